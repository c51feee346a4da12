// The GGUF side of engine/tokenizer_source.h: tokenizer.ggml.* keys (docs of ggml-org/ggml, docs/gguf.md).
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

// What a value of tokenizer.ggml.pre stands for.
struct GgufPreTokenizer {
  std::vector<NormalizerStep> normalizer;
  std::vector<PreTokenizerStep> steps;
  bool ignore_merges = false;
  bool adds_bos = false;  // unless tokenizer.ggml.add_bos_token says otherwise
};
Result<GgufPreTokenizer> gguf_pre_tokenizer(std::string_view name);

}  // namespace quire
