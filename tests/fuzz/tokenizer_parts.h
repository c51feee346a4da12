// What the targets of tokenizers share: whether a tokenizer made from another gives the same ids and bytes.
#pragma once

#include <algorithm>
#include <memory>
#include <string>

#include "fuzz/documents.h"
#include "vocab/test_checkpoint.h"
#include "vocab/tokenizer_export.h"
#include "vocab/tokenizer_source.h"

namespace quire {

using testing_checkpoint::MetaCheckpoint;

// Texts for any vocabulary: words, digits, runs, spaces, other scripts, what is not UTF-8, spellings of tokens.
inline constexpr const char* kFuzzTexts[] = {"",
                                             "a",
                                             "ab abc  aab\n\nb",
                                             "12 345.6",
                                             "<s>a</s> b",
                                             "\xe4\xb8\xad \xc3\xa9"
                                             "e\xcc\x81",
                                             "\xff\xc3",
                                             "aaaaaaaa bbbb",
                                             "a<|im_end|>b\t",
                                             "\xe2\x96\x81"
                                             "a"};

inline void exercise(const Tokenizer& tokenizer) {
  for (const char* text : kFuzzTexts) {
    for (const bool special : {false, true}) {
      const auto ids = tokenizer.encode(text, {.add_special = special, .parse_special = special});
      if (ids.ok()) (void)tokenizer.decode(*ids, special);
    }
  }
}

// Fails where the two differ, in the words of vocab/tokenizer_export.h.
inline void require_same(const Checkpoint& original, const Checkpoint& converted) {
  const auto before = load_tokenizer(original), after = load_tokenizer(converted);
  fuzz_require(before.ok(), "a tokenizer that was converted loads");
  fuzz_require(after.ok(), "what was converted loads: " + after.status().message());
  for (const char* text : kFuzzTexts) {
    for (const bool special : {false, true}) {
      const EncodeOptions options{.add_special = special, .parse_special = special};
      const auto expected = (*before)->encode(text, options), got = (*after)->encode(text, options);
      if (!expected.ok()) continue;
      // Tokens that the embedding has no row for are left out of a GGUF file.
      const auto no_row = [&](int32_t id) { return id >= (*after)->vocab_size(); };
      if (std::any_of(expected->begin(), expected->end(), no_row)) continue;
      fuzz_require(got.ok() && *got == *expected, std::string("the same ids for '") + text + "'");
      fuzz_require((*before)->decode(*expected, true) == (*after)->decode(*got, true), "the same text again");
    }
  }
}

}  // namespace quire
