#include "sample/sampling_params.h"

#include <cmath>
#include <string>

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
  return {};
}

}  // namespace quire
