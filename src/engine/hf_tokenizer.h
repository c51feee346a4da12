// The Hugging Face side of engine/tokenizer_source.h: tokenizer.json, tokenizer_config.json, chat_template.jinja.
// Source of the field meanings: huggingface/tokenizers (serde of each component), transformers'
// tokenization_utils_base.
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
// Templates beside the usual one, by name.
Result<std::vector<std::pair<std::string, std::string>>> hf_named_chat_templates(const Checkpoint& checkpoint);
Result<std::vector<std::pair<std::string, std::string>>> hf_special_token_texts(const Checkpoint& checkpoint);

}  // namespace quire
