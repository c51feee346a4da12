// Whether a request may run at all, and why not: the only place that says so. What the queue has room for is QueueLimits'.
// A value, any thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "engine/request.h"
#include "sched/scheduler.h"

namespace quire {

struct RequestLimits {
  int64_t vocab_size = 0;
  int64_t context = 0;          // tokens that prompt and answer may have together
  int64_t trained_context = 0;  // more than that no --context gives; 0: not known
  int64_t kv_tokens = 0;        // tokens of one sequence whose K and V the cache holds
  int64_t max_choices = 1;      // sequences that run at once

  // Those of an engine around `scheduler`.
  static RequestLimits of(const Scheduler& scheduler, int64_t vocab_size, int64_t context, int64_t trained_context);

  // Tokens that an answer to so long a prompt may have; below 1: there is no room for one.
  int64_t answer_room(int64_t prompt_tokens) const;

  // kInvalidArgument for what makes no sense, kOutOfRange for what does not fit, with the counts. `field`, unless null,
  // becomes the field of the request that the error is about.
  Status check(const Request& request, std::string_view* field = nullptr) const;
  // That part of it: `max_tokens` below 0 stands for at least one.
  Status check_length(int64_t prompt_tokens, int64_t max_tokens, std::string_view* field = nullptr) const;
};

}  // namespace quire
