#include "vocab/tokenizer_source.h"

#include "vocab/gguf_tokenizer.h"
#include "vocab/hf_tokenizer.h"

namespace quire {
namespace {

bool is_gguf(const Checkpoint& checkpoint) { return checkpoint.format().starts_with("GGUF"); }

// Adds the file to a message that names only a key or field.
Status in_file(const Checkpoint& checkpoint, const Status& status) {
  if (status.ok()) return status;
  return {status.code(), checkpoint.path() + ": " + status.message()};
}

}  // namespace

Result<TokenizerSpec> tokenizer_spec_of(const Checkpoint& checkpoint) {
  Result<TokenizerSpec> spec = is_gguf(checkpoint) ? gguf_tokenizer_spec(checkpoint) : hf_tokenizer_spec(checkpoint);
  if (!spec.ok()) return in_file(checkpoint, spec.status());
  for (std::string& remark : spec->remarks) remark = checkpoint.path() + ": " + remark;
  std::vector<int32_t>& ends = spec->end_of_generation_ids;
  const std::vector<int32_t>& configured = checkpoint.hparams().eos_token_ids;
  ends.insert(ends.end(), configured.begin(), configured.end());
  return spec;
}

Result<std::unique_ptr<Tokenizer>> load_tokenizer(const Checkpoint& checkpoint) {
  QUIRE_ASSIGN_OR_RETURN(TokenizerSpec spec, tokenizer_spec_of(checkpoint));
  Result<std::unique_ptr<Tokenizer>> tokenizer = Tokenizer::create(std::move(spec));
  if (!tokenizer.ok()) return in_file(checkpoint, tokenizer.status());
  return tokenizer;
}

Result<std::optional<std::string>> chat_template_source(const Checkpoint& checkpoint) {
  Result<std::optional<std::string>> source =
      is_gguf(checkpoint) ? gguf_chat_template(checkpoint) : hf_chat_template(checkpoint);
  if (!source.ok()) return in_file(checkpoint, source.status());
  return source;
}

Result<std::vector<std::pair<std::string, std::string>>> special_token_texts(const Checkpoint& checkpoint) {
  auto texts = is_gguf(checkpoint) ? gguf_special_token_texts(checkpoint) : hf_special_token_texts(checkpoint);
  if (!texts.ok()) return in_file(checkpoint, texts.status());
  return texts;
}

}  // namespace quire
