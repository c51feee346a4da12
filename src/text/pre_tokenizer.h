// Cuts normalized text into the pieces that the model encodes one by one.
//
// Immutable after creation, any thread. Linear in the length of the text for the hand-written splitters and for the
// literal, digit and punctuation steps; regular expressions run under limits.
// Source of the semantics: huggingface/tokenizers, tokenizers/src/pre_tokenizers and tokenizer/normalizer.rs (split).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/work_budget.h"
#include "text/splitter.h"
#include "text/tokenizer_spec.h"

namespace quire {

// Pieces of `text`, which views the caller's text or, where a step changed it, `storage`.
struct PieceList {
  std::string_view text;
  std::vector<TextRange> pieces;  // not empty, ascending
  std::string storage;
};

class PreTokenizer {
 public:
  static Result<PreTokenizer> create(const std::vector<PreTokenizerStep>& steps);

  // `text` is valid UTF-8. `at_start`: it begins where the user's text begins. Overwrites `out`. Fails when `meter` (may
  // be null) stops the work, and when a regular expression exceeds its limits.
  Status split(std::string_view text, bool at_start, PieceList* out, WorkMeter* meter = nullptr) const;

  PreTokenizer(PreTokenizer&&) noexcept;
  PreTokenizer& operator=(PreTokenizer&&) noexcept;
  ~PreTokenizer();

 private:
  struct Step;
  explicit PreTokenizer(std::vector<Step> steps);

  std::vector<Step> steps_;
};

}  // namespace quire
