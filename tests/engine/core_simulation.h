// A deterministic simulation of the whole engine around the real EngineCore, over an executor that is a chain of hashes: a
// seed draws configuration, requests, arrivals, drafts, cancels between and within steps, failing steps, deadlines and full
// queues. The same seed does the same thing again.
//
// The law: each submitted request hears exactly one terminal event and nothing after it; what it hears is a function of the
// request alone, or a beginning of that where it was cut off; deadlines and queue time-outs fire within a step; a failing
// step ends its own requests only; nothing is left over.
#pragma once

#include <cstdint>
#include <string>

namespace quire {

struct CoreTotals {
  int64_t runs = 0;
  int64_t steps = 0;
  int64_t finished = 0;
  int64_t refused = 0;  // for ever, or because the queue was full
  int64_t cancelled = 0;
  int64_t cancelled_in_step = 0;  // of these, while a step was computed that they had rows in
  int64_t failed = 0;
  int64_t late = 0;   // their deadline or their time in the queue ran out
  int64_t forks = 0;  // choices beyond the first
  int64_t preemptions = 0;
  int64_t drafted = 0;  // draft tokens that were verified
  int64_t accepted = 0;
  int64_t stop_strings = 0;
  int64_t prompt_scores = 0;
};

// One fault at one place, on top of those that the seed draws.
struct CoreFault {
  enum class Kind { kNone, kCancelBetween, kCancelInStep, kCancelFromEvent, kFailStep };
  Kind kind = Kind::kNone;
  int64_t step = 0;
  int64_t victim = 0;  // which of the live requests
};

// Runs the simulation of `seed` and adds to `totals`. Returns what went wrong first; empty: nothing.
std::string simulate_core(uint64_t seed, CoreTotals& totals, const CoreFault& fault = {});

}  // namespace quire
