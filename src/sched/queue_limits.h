// How much may wait, and the only rule that refuses for it. A value, any thread.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace quire {

// What waits: requests that no step has computed yet, and their prompt tokens.
struct QueueUse {
  int64_t requests = 0;
  int64_t tokens = 0;

  QueueUse& operator+=(const QueueUse& more) {
    requests += more.requests;
    tokens += more.tokens;
    return *this;
  }
  bool operator==(const QueueUse&) const = default;
};

struct QueueLimits {
  int64_t max_requests = 1024;
  int64_t max_tokens = 1 << 20;

  // kResourceExhausted, with the counts, when one more prompt is too much beside what waits. A prompt longer than
  // max_tokens is taken while no other waits, or it never would be.
  Status admit(const QueueUse& waiting, int64_t prompt_tokens) const;
};

}  // namespace quire
