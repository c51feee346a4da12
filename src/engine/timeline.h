// What happened to each request and when: the story behind a latency figure. The last requests are kept in a ring, as
// many as fit kMaxEvents events together.
//
// Times are nanoseconds of the engine's monotonic clock. Written by the engine thread, read from any: writers and
// readers share one lock, which a writer takes once per event and a reader only to copy a story.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"

namespace quire {

struct TraceEvent {
  enum class Kind : uint8_t { kQueued, kAdmitted, kStep, kPreempted, kFirstToken, kChoiceFinished, kFinished, kFailed };

  int64_t time_ns = 0;
  Kind kind = Kind::kQueued;
  int32_t choice = 0;
  int32_t rows = 0;       // kStep: rows of this request; kAdmitted: tokens found in the prefix cache
  int32_t step_rows = 0;  // kStep: of all requests in the step
  int32_t step_sequences = 0;
  int32_t differs_at = -1;  // kAdmitted: first token that differs from what was cached
  const char* detail = "";  // static text: why a prefix match ended, a finish reason
};

class Timeline {
 public:
  static constexpr size_t kMaxEvents = size_t{1} << 18;  // of all stories: 12 MiB

  explicit Timeline(size_t capacity) : capacity_(capacity) {}

  // Ids of requests that are still in the ring are not reused; a second begin() with one starts its story anew.
  // Its story can be read by whoever knows `reader`.
  void begin(const std::string& id, int64_t time_ns, int64_t prompt_tokens, uint64_t reader);
  void add(std::string_view id, const TraceEvent& event);

  // kNotFound for a request that never was, has left the ring, or is another reader's.
  Result<std::string> json(std::string_view id, uint64_t reader) const;

 private:
  struct Story {
    uint64_t reader = 0;
    int64_t prompt_tokens = 0;
    int64_t dropped_steps = 0;  // of a very long generation
    std::vector<TraceEvent> events;
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  void drop_oldest();

  const size_t capacity_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, Story, Hash, std::equal_to<>> stories_;
  std::deque<std::string> order_;
  size_t events_ = 0;  // of all stories
};

}  // namespace quire
