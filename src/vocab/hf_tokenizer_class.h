// Which of transformers' classes reads a directory's tokenizer, and what that class does in its own way.
//
// Since transformers 5 some classes take only vocabulary, merges and post-processor from tokenizer.json and split text
// by their own rules (AutoTokenizer and models/*/tokenization_*.py of 5.24). Pure functions, any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer_spec.h"
#include "vocab/hf_tokenizer_settings.h"

namespace quire {

enum class HfTokenizerClass {
  kBackend,  // TokenizersBackend, PreTrainedTokenizerFast, any that quire has no rules for: tokenizer.json as it is
  kLlama,    // SentencePiece's BPE, a space before the text
  kGemma,    // the same without that space
  kQwen2,    // byte-level, with Qwen 2's pattern
  kGpt2,     // byte-level, with GPT-2's pattern
};

std::string_view hf_class_name(HfTokenizerClass tokenizer_class);

// `byte_level`: tokenizer.json splits or decodes text by bytes. A class whose own rules quire does not know is
// kBackend, with a remark.
HfTokenizerClass resolve_hf_tokenizer_class(const HfTokenizerSettings& settings, bool byte_level,
                                            std::vector<std::string>* remarks);

// The names that count: those of the files, and where they are silent the class's own ("unk_token", "<unk>", ...). In
// transformers' order, ids unset.
std::vector<HfNamedToken> hf_named_tokens(HfTokenizerClass tokenizer_class, const HfTokenizerSettings& settings);

// Normalizer, pre-tokenizer, decoder and the model's flags of a class other than kBackend. Returns whether it changed
// what `spec` held.
bool apply_hf_class(HfTokenizerClass tokenizer_class, const HfTokenizerSettings& settings, TokenizerSpec* spec);

}  // namespace quire
