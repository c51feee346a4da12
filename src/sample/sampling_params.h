// How the next token is chosen from the logits. Plain data, validated once where it enters.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"

namespace quire {

struct SamplingParams {
  float temperature = 1.0f;         // below 1e-5: greedy, ties to the lowest id
  int32_t top_k = 0;                // 0: off
  float top_p = 1.0f;               // (0, 1]
  float min_p = 0.0f;               // [0, 1]: keeps tokens with p >= min_p * p_max
  float repetition_penalty = 1.0f;  // > 0, over prompt and output: l > 0 ? l / r : l * r
  float frequency_penalty = 0.0f;   // [-2, 2], times the count in the output, subtracted
  float presence_penalty = 0.0f;    // [-2, 2], subtracted once a token is in the output
  struct Bias {
    int32_t id = 0;
    float bias = 0;  // [-100, 100], added once
  };
  std::vector<Bias> logit_bias;
  int64_t min_tokens = 0;                       // before this output index no token of min_tokens_mask is chosen
  std::vector<int32_t> min_tokens_mask;         // what would end the generation
  std::vector<std::vector<int32_t>> bad_words;  // token sequences that never appear in the output
  uint64_t seed = 0;                            // the draw at output index i depends on (seed, i) alone

  Status validate() const;  // names the field and its range
};

}  // namespace quire
