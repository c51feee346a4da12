// The Hugging Face side of vocab/tokenizer_source.h. The vocabulary comes from tokenizer.json, else tokenizer.model
// (SentencePiece BPE), else vocab.json with merges.txt; how text is split also from the class that transformers reads it
// with (vocab/hf_tokenizer_class.h), and added tokens from all files that name some (vocab/hf_added_tokens.h).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "formats/checkpoint.h"
#include "text/tokenizer_spec.h"

namespace quire {

Result<TokenizerSpec> hf_tokenizer_spec(const Checkpoint& checkpoint);
Result<std::optional<std::string>> hf_chat_template(const Checkpoint& checkpoint);
// Whether chat_template.jinja, which counts, and tokenizer_config.json hold different templates.
bool hf_chat_templates_differ(const Checkpoint& checkpoint);
// Templates beside the usual one, by name.
Result<std::vector<std::pair<std::string, std::string>>> hf_named_chat_templates(const Checkpoint& checkpoint);
Result<std::vector<std::pair<std::string, std::string>>> hf_special_token_texts(const Checkpoint& checkpoint);

}  // namespace quire
