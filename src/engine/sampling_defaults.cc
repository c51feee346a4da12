#include "engine/sampling_defaults.h"

#include <algorithm>
#include <random>

namespace quire {

SamplingParams sampling_params(const Options& options, const Hparams& hparams) {
  SamplingParams params;
  if (hparams.default_temperature || hparams.default_top_k || hparams.default_top_p || hparams.default_min_p) {
    params.temperature = hparams.default_temperature.value_or(params.temperature);
    params.top_k = hparams.default_top_k.value_or(params.top_k);
    params.top_p = hparams.default_top_p.value_or(params.top_p);
    params.min_p = hparams.default_min_p.value_or(params.min_p);
  } else {
    params.temperature = static_cast<float>(kFallbackTemperature);
    params.top_p = static_cast<float>(kFallbackTopP);
  }
  params.repetition_penalty = hparams.default_repetition_penalty.value_or(params.repetition_penalty);
  if (options.temperature) params.temperature = static_cast<float>(*options.temperature);
  if (options.top_k) params.top_k = static_cast<int32_t>(std::max<int64_t>(*options.top_k, 0));  // -1, as 0: off
  if (options.top_p) params.top_p = static_cast<float>(*options.top_p);
  if (params.top_p == 0.0f) {  // the fewest tokens that reach nothing: one
    params.top_p = 1.0f;
    params.top_k = 1;
  }
  if (options.min_p) params.min_p = static_cast<float>(*options.min_p);
  if (options.repetition_penalty) params.repetition_penalty = static_cast<float>(*options.repetition_penalty);
  params.frequency_penalty = static_cast<float>(options.frequency_penalty);
  params.presence_penalty = static_cast<float>(options.presence_penalty);
  params.min_tokens = options.min_tokens;
  // 32 random bits: enough to differ, short enough to type again.
  params.seed = options.seed ? *options.seed : std::random_device{}();
  return params;
}

Status set_ends(const Options& options, Request& request) {
  QUIRE_ASSIGN_OR_RETURN(request.stop, StopTexts::create(options.stop));
  request.stop_token_ids.assign(options.stop_token_ids.begin(), options.stop_token_ids.end());
  std::ranges::sort(request.stop_token_ids);
  // std::ranges::unique of GCC 12 does not compile with Clang 14, which Debian 12 has.
  const auto twice = std::unique(request.stop_token_ids.begin(), request.stop_token_ids.end());
  request.stop_token_ids.erase(twice, request.stop_token_ids.end());
  request.ignore_eos = options.ignore_eos;
  return {};
}

}  // namespace quire
