// The GGUF side of vocab/tokenizer_source.h: tokenizer.ggml.* keys (docs of ggml-org/ggml, docs/gguf.md).
//
// A GGUF file holds the vocabulary and names the rest; what the names mean is that of the models' own tokenizer.json.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "formats/checkpoint.h"
#include "text/tokenizer_spec.h"

namespace quire {

Result<TokenizerSpec> gguf_tokenizer_spec(const Checkpoint& checkpoint);
Result<std::optional<std::string>> gguf_chat_template(const Checkpoint& checkpoint);
Result<std::vector<std::pair<std::string, std::string>>> gguf_special_token_texts(const Checkpoint& checkpoint);

// The special tokens that the file names, by the names of chat templates; each id is within the vocabulary.
Result<std::vector<std::pair<std::string, int32_t>>> gguf_special_token_ids(const Checkpoint& checkpoint);
// Templates beside the usual one, by name.
Result<std::vector<std::pair<std::string, std::string>>> gguf_named_chat_templates(const Checkpoint& checkpoint);
// The part of a key behind "tokenizer.ggml." that names the special token of a chat template's name; empty: none does.
std::string_view gguf_special_key(std::string_view name);
// Whether a control token of this text ends a generation, named or not.
bool gguf_ends_generation(std::string_view text);

// What a value of tokenizer.ggml.pre stands for.
struct GgufPreTokenizer {
  std::vector<NormalizerStep> normalizer;
  std::vector<PreTokenizerStep> steps;
  bool ignore_merges = false;
  bool adds_bos = false;  // unless tokenizer.ggml.add_bos_token says otherwise
};
Result<GgufPreTokenizer> gguf_pre_tokenizer(std::string_view name);

}  // namespace quire
