// Token ids to text, as they are generated: never half a code point, never a byte that is not UTF-8.
//
// Bytes of an unfinished code point are held back (three at most); a byte that can no longer become one is U+FFFD.
// Byte-level vocabularies yield one U+FFFD for each ill-formed sequence, byte-token vocabularies one for each byte,
// as the two decoders of Hugging Face `tokenizers` do. Unlike there, good characters stay good when a bad byte
// follows them in the same run of byte tokens: they were already handed out.
//
// One Detokenizer a generation, one thread at a time. The Tokenizer must outlive it.
#pragma once

#include <cstdint>
#include <string>

#include "text/tokenizer.h"
#include "unicode/utf8.h"

namespace quire {

class Detokenizer {
 public:
  explicit Detokenizer(const Tokenizer& tokenizer, bool render_special = false);

  // The text that `id` completes; empty while a code point is unfinished, and for ids that name no token.
  std::string push(int32_t id);

  // What was held back, as U+FFFD. The Detokenizer is then as new.
  std::string finish();

 private:
  // Takes away the space that the decoder drops at the start of a text.
  std::string trim_start(std::string text);

  const Tokenizer* tokenizer_;
  bool render_special_;
  bool at_start_ = true;
  Utf8Repair repair_;
};

}  // namespace quire
