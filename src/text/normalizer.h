// The normalizer of a tokenizer: NFC, literal replacement, prefix.
//
// Immutable, any thread. Linear time up to a logarithm. NFC uses utf8proc's decompositions and Hugging Face's idea of
// which marks reorder (its tables are those of Unicode 9).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/work_budget.h"
#include "text/tokenizer_spec.h"

namespace quire {

class Normalizer {
 public:
  // Fails on a replacement of the empty string.
  static Result<Normalizer> create(std::vector<NormalizerStep> steps);

  // `text` is valid UTF-8. The result views `text` where nothing changed, else `storage`. Whoever gives a meter asks it
  // afterwards whether the work was stopped half-way.
  std::string_view apply(std::string_view text, std::string* storage, WorkMeter* meter = nullptr) const;
  // The same for text that continues another: nothing is put before it.
  std::string_view apply_to_rest(std::string_view text, std::string* storage, WorkMeter* meter = nullptr) const;

  bool empty() const { return steps_.empty(); }

 private:
  std::string_view apply_steps(std::string_view text, bool prepends, std::string* storage, WorkMeter* meter) const;
  explicit Normalizer(std::vector<NormalizerStep> steps) : steps_(std::move(steps)) {}

  std::vector<NormalizerStep> steps_;
};

// Every `from` in `text` by `to`, left to right; less when `meter` stops it.
std::string replace_all(std::string_view text, std::string_view from, std::string_view to, WorkMeter* meter = nullptr);

// Normalization Form C of valid UTF-8; something shorter when `meter` stops it.
std::string to_nfc(std::string_view text, WorkMeter* meter = nullptr);

}  // namespace quire
