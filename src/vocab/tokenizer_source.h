// What text/ needs from a checkpoint: the tokenizer's parts, the chat template and the words it refers to.
//
// GGUF files name their parts in tokenizer.ggml.* keys, Hugging Face directories in tokenizer.json and
// tokenizer_config.json. Pure functions of the checkpoint, any thread. Errors name the key or the JSON field.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "formats/checkpoint.h"
#include "text/tokenizer.h"

namespace quire {

// Fails when the checkpoint carries no tokenizer, one that contradicts itself, or one of a kind quire does not know:
// the message names the model, pre-tokenizer, normalizer or decoder.
Result<TokenizerSpec> tokenizer_spec_of(const Checkpoint& checkpoint);

// The tokenizer itself; end_of_generation_ids() is the union of what all parts of the checkpoint name.
Result<std::unique_ptr<Tokenizer>> load_tokenizer(const Checkpoint& checkpoint);

// The Jinja source of the chat template; nothing when the model carries none.
Result<std::optional<std::string>> chat_template_source(const Checkpoint& checkpoint);

// The special tokens by the names that chat templates use ("bos_token", "eos_token", "unk_token", "pad_token", ...),
// each with its text; those that the checkpoint does not define are left out.
Result<std::vector<std::pair<std::string, std::string>>> special_token_texts(const Checkpoint& checkpoint);

}  // namespace quire
