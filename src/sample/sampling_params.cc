#include "sample/sampling_params.h"

#include <cmath>
#include <string>
#include <utility>

namespace quire {

Status SamplingParams::validate() const {
  // Written so that NaN fails each test.
  if (!(temperature >= 0.0f && std::isfinite(temperature))) {
    return invalid_argument("temperature is " + std::to_string(temperature) + "; it must be a number of 0 or more");
  }
  if (top_k < 0) return invalid_argument("top_k is " + std::to_string(top_k) + "; it must be 0 (off) or more");
  if (!(top_p > 0.0f && top_p <= 1.0f)) {
    return invalid_argument("top_p is " + std::to_string(top_p) + "; it must be above 0 and at most 1");
  }
  if (!(min_p >= 0.0f && min_p <= 1.0f)) {
    return invalid_argument("min_p is " + std::to_string(min_p) + "; it must be between 0 and 1");
  }
  if (!(repetition_penalty > 0.0f && std::isfinite(repetition_penalty))) {
    return invalid_argument("repetition_penalty is " + std::to_string(repetition_penalty) + "; it must be above 0");
  }
  for (const auto& [name, value] :
       {std::pair{"frequency_penalty", frequency_penalty}, std::pair{"presence_penalty", presence_penalty}}) {
    if (!(value >= -2.0f && value <= 2.0f)) {
      return invalid_argument(std::string(name) + " is " + std::to_string(value) + "; it must be between -2 and 2");
    }
  }
  for (const Bias& entry : logit_bias) {
    if (!(entry.bias >= -100.0f && entry.bias <= 100.0f)) {
      return invalid_argument("logit_bias of token " + std::to_string(entry.id) + " is " + std::to_string(entry.bias) +
                              "; it must be between -100 and 100");
    }
  }
  if (min_tokens < 0) return invalid_argument("min_tokens is " + std::to_string(min_tokens) + "; it must be 0 or more");
  return {};
}

}  // namespace quire
