// How the next token is chosen from the logits. Plain data, validated once where it enters.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace quire {

struct SamplingParams {
  float temperature = 1.0f;         // below 1e-5: greedy, ties to the lowest id
  int32_t top_k = 0;                // 0: off
  float top_p = 1.0f;               // (0, 1]
  float min_p = 0.0f;               // [0, 1]: keeps tokens with p >= min_p * p_max
  float repetition_penalty = 1.0f;  // > 0, over prompt and output: l > 0 ? l / r : l * r
  uint64_t seed = 0;                // the draw at output index i depends on (seed, i) alone

  Status validate() const;  // names the field and its range
};

}  // namespace quire
