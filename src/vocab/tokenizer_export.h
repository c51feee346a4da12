// A model's tokenizer in the words of the other format, so that a model can be written in that format.
//
// Both ways go through the TokenizerSpec that the readers of this folder make, which is what "the same tokenizer" means:
// equal ids for every text and equal bytes for every token, read by quire or by Hugging Face `tokenizers`. What the other
// format cannot say is an error that names the key or field; nothing is approximated. (Pieces with scores: see
// vocab/piece_merges.h.) Chat templates, special tokens and the tokens that end a generation come along. What has no place
// on the other side and changes no token is left behind: offsets of post-processors, GGUF's fim_*_token_id.
//
// This stands in engine/ because only here formats and text meet: formats/ knows no tokenizer. A CheckpointWriter is given
// what these return. Pure functions of the checkpoint, any thread. Memory: a few times the size of the tokenizer.
#pragma once

#include <map>
#include <string>

#include "base/status.h"
#include "formats/checkpoint.h"
#include "formats/gguf_file.h"

namespace quire {

// The documents of a Hugging Face directory, by file name: tokenizer.json, tokenizer_config.json (with the chat template),
// special_tokens_map.json, and generation_config.json, which holds the ids that end a generation.
Result<std::map<std::string, std::string>> hf_tokenizer_documents(const Checkpoint& gguf);

// The keys of GGUF that begin with "tokenizer.". A writer stores unsigned integers as u32, signed arrays as i32, floats as
// f32, which is what readers of GGUF expect. There is a token for each row of the embedding that config.json states.
Result<GgufMetadata> gguf_tokenizer_metadata(const Checkpoint& hf);

}  // namespace quire
