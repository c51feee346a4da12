#include "sched/queue_limits.h"

#include <string>

namespace quire {

Status QueueLimits::admit(const QueueUse& waiting, int64_t prompt_tokens) const {
  const bool fits = waiting.tokens == 0 || prompt_tokens <= max_tokens - waiting.tokens;
  if (waiting.requests < max_requests && fits) return {};
  return resource_exhausted("the queue is full: " + std::to_string(waiting.requests) + " requests with " +
                            std::to_string(waiting.tokens) + " prompt tokens wait, " + std::to_string(max_requests) +
                            " and " + std::to_string(max_tokens) + " may");
}

}  // namespace quire
