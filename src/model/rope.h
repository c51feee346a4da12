// Rotary position embedding: the frequencies of each scaling variant, and the cos / sin rows of a step.
// Source: transformers, modeling_rope_utils.py (formulas); "Attention factor" multiplies both cos and sin.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "formats/checkpoint.h"
#include "formats/hparams.h"
#include "model/config.h"

namespace quire {

class RopeTable {
 public:
  // `dim` rotary dimensions; `frequency_factors` (dim / 2, may be empty) divide the frequencies, as GGUF's rope_freqs
  // do; `context_length` is the trained context.
  RopeTable(const RopeParams& params, int64_t dim, int64_t context_length, std::span<const float> frequency_factors);

  // cos and sin of one position, dim / 2 values each.
  void fill(int64_t position, float* cos, float* sin) const;

  std::span<const double> frequencies() const { return inverse_frequencies_; }
  double magnitude() const { return magnitude_; }

 private:
  std::vector<double> inverse_frequencies_;
  double magnitude_ = 1.0;
};

// Those of all ropes of a model, with the frequency factors that its checkpoint may bring.
std::vector<RopeTable> rope_tables(const Checkpoint& checkpoint, const ModelConfig& config);

}  // namespace quire
