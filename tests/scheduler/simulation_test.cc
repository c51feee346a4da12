// The law of the scheduler: what a request gets is a function of the request alone. Not of page size, pool size, chunks,
// policy, prefix cache, drafts, co-tenants, preemptions, failures or cancels of others.
//
// QUIRE_FULL=1 runs 100,000 configurations instead of 3,000, and 500 workloads with faults instead of 12;
// QUIRE_SIMULATION_SEED=N runs one configuration.
#include "scheduler/simulation.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <string>

namespace quire {
namespace {

TEST(SchedulerSimulation, OutputsAreAFunctionOfTheRequestAlone) {
  SimulationTotals totals;
  if (const char* one = std::getenv("QUIRE_SIMULATION_SEED")) {
    EXPECT_EQ(simulate(std::strtoull(one, nullptr, 10), totals), "");
    return;
  }
  const uint64_t runs = std::getenv("QUIRE_FULL") != nullptr ? 100'000 : 3'000;
  for (uint64_t seed = 0; seed < runs; ++seed) {
    const std::string failure = simulate(seed, totals);
    ASSERT_EQ(failure, "") << "run it alone with QUIRE_SIMULATION_SEED=" << seed;
  }
  std::cout << totals.runs << " configurations, " << totals.steps << " steps, " << totals.finished << " finished, "
            << totals.rejected << " rejected, " << totals.cancelled << " cancelled, " << totals.failed << " failed, "
            << totals.counters.preemptions << " preemptions, " << totals.evictions << " evictions, " << totals.forks
            << " forks, " << totals.counters.copied_pages << " copied pages, " << totals.counters.prefix_hit_tokens
            << " tokens found, " << totals.counters.accepted_tokens << " drafts accepted, "
            << totals.counters.wasted_rows << " padded rows\n";
  // Each of these must have been exercised, or the test proves less than it says.
  const auto per_run = [&](int64_t count) { return static_cast<double>(count) / static_cast<double>(runs); };
  EXPECT_GT(per_run(totals.finished), 3);
  EXPECT_GT(per_run(totals.rejected), 0.1);
  EXPECT_GT(per_run(totals.cancelled), 0.1);
  EXPECT_GT(per_run(totals.failed), 0.1);
  EXPECT_GT(per_run(totals.counters.preemptions), 0.5);
  EXPECT_GT(per_run(totals.counters.resumed_hit_tokens), 0.5);
  EXPECT_GT(per_run(totals.counters.recomputed_tokens), 0.5);
  EXPECT_GT(per_run(totals.evictions), 3);
  EXPECT_GT(per_run(totals.counters.copied_pages), 0.1);
  EXPECT_GT(per_run(totals.counters.prefix_hit_tokens), 5);
  EXPECT_GT(per_run(totals.counters.accepted_tokens), 2);
  EXPECT_GT(per_run(totals.counters.wasted_rows), 0.5);
}

// Not left to chance: small workloads with one fault at each of their steps.
TEST(SchedulerSimulation, AFaultAtEveryPointHurtsNobodyElse) {
  const uint64_t seeds = std::getenv("QUIRE_FULL") != nullptr ? 500 : 12;
  using Kind = SimulationFault::Kind;
  int64_t struck = 0;
  int64_t runs = 0;
  for (uint64_t seed = 1'000'000; seed < 1'000'000 + seeds; ++seed) {
    SimulationTotals clean;
    ASSERT_EQ(simulate(seed, clean), "") << "seed " << seed;
    SimulationTotals faulty;
    for (int64_t step = 0; step < clean.steps; ++step) {
      for (const Kind kind : {Kind::kCancelBeforePlanning, Kind::kCancelInFlight, Kind::kFailStep}) {
        for (int64_t victim = 0; victim < (kind == Kind::kFailStep ? 1 : 4); ++victim) {
          ASSERT_EQ(simulate(seed, faulty, {kind, step, victim}), "")
              << "seed " << seed << ", fault " << static_cast<int>(kind) << " in step " << step << ", victim "
              << victim;
        }
      }
    }
    struck += faulty.failed + faulty.cancelled;
    runs += faulty.runs;
  }
  EXPECT_GT(struck, runs) << "most faults must hit something";
}

}  // namespace
}  // namespace quire
