// Log-probabilities of a row of raw logits, as the model gave them: before penalties, bias and temperature.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace quire {

struct RankedToken {
  int32_t id = 0;
  float logprob = 0;
};

struct RowLogprobs {
  float chosen = 0;
  int32_t rank = 0;              // tokens likelier than the chosen one, ties by lower id first
  std::vector<RankedToken> top;  // by (logprob descending, id ascending)
};

// `normalizer` is log(sum(exp(logits))); `top_n` is cut to the vocabulary.
RowLogprobs row_logprobs(std::span<const float> logits, float normalizer, int32_t chosen_id, int32_t top_n);

}  // namespace quire
