// Any tokenizer documents of a Hugging Face directory, converted to GGUF's keys: an error, or the same tokenizer, which
// becomes documents again.
//
// Input: the number of rows of the embedding, tokenizer.json, tokenizer_config.json, special_tokens_map.json,
// config.json, added_tokens.json, vocab.json, merges.txt and tokenizer.model (which runs to the end), with "---" between
// them.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>

#include "fuzz/tokenizer_parts.h"

namespace quire {
namespace {

constexpr int64_t kMostRows = 4096;

void convert(MetaCheckpoint& hf) {
  (void)chat_template_source(hf);
  (void)special_token_texts(hf);
  if (const auto tokenizer = load_tokenizer(hf); tokenizer.ok()) exercise(**tokenizer);
  const auto keys = gguf_tokenizer_metadata(hf);
  if (!keys.ok()) return;
  const MetaCheckpoint gguf(std::map<std::string, MetaValue, std::less<>>(keys->begin(), keys->end()));
  require_same(hf, gguf);
  const auto documents = hf_tokenizer_documents(gguf);
  if (!documents.ok()) return;
  require_same(gguf,
               MetaCheckpoint(std::map<std::string, std::string, std::less<>>(documents->begin(), documents->end())));
}

}  // namespace
}  // namespace quire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const char* names[] = {nullptr,
                         "tokenizer.json",
                         "tokenizer_config.json",
                         "special_tokens_map.json",
                         "config.json",
                         "added_tokens.json",
                         "vocab.json",
                         "merges.txt",
                         "tokenizer.model"};
  const auto parts = quire::split_documents({reinterpret_cast<const char*>(bytes), size}, std::size(names));
  std::map<std::string, std::string, std::less<>> documents;
  for (size_t i = 1; i < std::size(names); ++i) {
    if (!parts[i].empty()) documents[names[i]] = parts[i];
  }
  quire::MetaCheckpoint hf(std::move(documents));
  hf.hparams().vocab_size = std::clamp<int64_t>(std::atoll(parts[0].c_str()), 0, quire::kMostRows);
  quire::convert(hf);
  return 0;
}
