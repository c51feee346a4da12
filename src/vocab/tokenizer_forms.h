// What both ways of vocab/tokenizer_export.h need to know of a tokenizer. Pure functions, any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "formats/checkpoint.h"
#include "text/tokenizer_spec.h"

namespace quire {

// The spec of a checkpoint whose tokenizer works: ids within the vocabulary, merges that make tokens, patterns that compile.
Result<TokenizerSpec> checked_tokenizer_spec(const Checkpoint& checkpoint);

// Where whole pieces are looked up in the vocabulary (ignore_merges), a GGUF reader leaves control tokens out of it and a
// reader of tokenizer.json does not. Fails unless that is all the same: no control token is spelled like a piece that the
// pre-tokenizer cuts. `where` names the list of tokens in messages.
Status check_control_pieces(const TokenizerSpec& spec, const std::string& where);

// Whether byte fallback has a token for every byte, so that it is the same with and without an unknown token.
bool has_all_bytes(const TokenizerSpec& spec);

// For tokenizers that merge characters. One with neither a token for every byte nor an unknown token drops characters;
// then a merge list joins what stands beside them, and scores, which go by the text itself, do not. Fails unless that
// cannot be. `where` names the list of tokens in messages.
Status check_dropped_characters(const TokenizerSpec& spec, const std::string& where);

// A regular expression with its "\x{4e00}" beyond ASCII as characters, which is how tokenizer.json files write them.
std::string spelled_out(std::string_view pattern);

}  // namespace quire
