// One generation as the server asks for it: plain data, immutable once submitted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/stop_matcher.h"
#include "sample/sampling_params.h"

namespace quire {

struct Request {
  std::string id;                       // names it in traces, logs and answers; unique among live requests
  std::vector<int32_t> prompt;          // at least one token
  int64_t max_tokens = -1;              // per choice; -1: the rest of the context
  int32_t choices = 1;                  // n: sampled from one prefill, each with its own seed
  SamplingParams sampling;              // the seed is always set; the server draws one where the client gave none
  StopTexts stop;                       // not part of the text
  std::vector<int32_t> stop_token_ids;  // ascending
  bool ignore_eos = false;
  int32_t logprobs = -1;         // per generated token the chosen one's and this many of the best; -1: none
  bool prompt_logprobs = false;  // also for every prompt token but the first
  int32_t priority = 0;          // lower runs first
  uint64_t cache_salt = 0;       // prefixes are shared only between equal salts
  int64_t deadline_ms = 0;       // from submit; 0: none. Past it the request fails in any state
  int64_t max_queue_ms = 0;      // longest wait for its first step; 0: none
};

}  // namespace quire
