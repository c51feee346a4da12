// A deterministic simulation of an engine around the real scheduler: a seed draws the configuration, arrivals, cancels,
// failing and slow steps, drafts, full queues. Safety is checked after every call, outputs against a request that runs
// alone without a cache, and liveness by a bound on the work. The same seed does the same thing again.
#pragma once

#include <cstdint>
#include <string>

#include "sched/scheduler.h"

namespace quire {

struct SimulationTotals {
  int64_t runs = 0;
  int64_t steps = 0;
  int64_t finished = 0;
  int64_t rejected = 0;
  int64_t cancelled = 0;
  int64_t failed = 0;
  int64_t evictions = 0;
  int64_t forks = 0;
  SchedulerCounters counters;  // summed
};

// One fault at one place, on top of those that the seed draws.
struct SimulationFault {
  enum class Kind { kNone, kCancelBeforePlanning, kCancelInFlight, kFailStep };
  Kind kind = Kind::kNone;
  int64_t step = 0;
  int64_t victim = 0;  // which of the requests known by then is cancelled
};

// Runs the simulation of `seed` and adds to `totals`. Returns what went wrong first; empty: nothing.
std::string simulate(uint64_t seed, SimulationTotals& totals, const SimulationFault& fault = {});

}  // namespace quire
