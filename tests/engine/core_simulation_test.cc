// The law of the engine: what a request hears is a function of the request alone, and it hears its end exactly once.
//
// QUIRE_FULL=1 runs 100,000 configurations instead of 3,000, and 300 workloads with faults instead of 10;
// QUIRE_SIMULATION_SEED=N runs one configuration.
#include "engine/core_simulation.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <string>

namespace quire {
namespace {

TEST(CoreSimulation, EachRequestHearsItsOwnTextAndOneEnd) {
  CoreTotals totals;
  if (const char* one = std::getenv("QUIRE_SIMULATION_SEED")) {
    EXPECT_EQ(simulate_core(std::strtoull(one, nullptr, 10), totals), "");
    return;
  }
  const uint64_t runs = std::getenv("QUIRE_FULL") != nullptr ? 100'000 : 3'000;
  for (uint64_t seed = 0; seed < runs; ++seed) {
    const std::string failure = simulate_core(seed, totals);
    ASSERT_EQ(failure, "") << "run it alone with QUIRE_SIMULATION_SEED=" << seed;
  }
  std::cout << totals.runs << " configurations, " << totals.steps << " steps, " << totals.finished << " finished, "
            << totals.refused << " refused, " << totals.cancelled << " cancelled (" << totals.cancelled_in_step
            << " with rows in the step), " << totals.failed << " failed, " << totals.late << " late, " << totals.forks
            << " forks, " << totals.preemptions << " preemptions, " << totals.accepted << " of " << totals.drafted
            << " drafts accepted, " << totals.stop_strings << " stop strings, " << totals.prompt_scores
            << " prompts scored\n";
  // Each of these must have been exercised, or the test proves less than it says.
  const auto per_run = [&](int64_t count) { return static_cast<double>(count) / static_cast<double>(runs); };
  EXPECT_GT(per_run(totals.finished), 2);
  EXPECT_GT(per_run(totals.refused), 0.5);
  EXPECT_GT(per_run(totals.cancelled), 0.2);
  EXPECT_GT(per_run(totals.cancelled_in_step), 0.05);
  EXPECT_GT(per_run(totals.failed), 0.05);
  EXPECT_GT(per_run(totals.late), 0.05);
  EXPECT_GT(per_run(totals.forks), 0.2);
  EXPECT_GT(per_run(totals.preemptions), 0.2);
  EXPECT_GT(per_run(totals.drafted), 5);
  EXPECT_GT(per_run(totals.accepted), 2);
  EXPECT_LT(totals.accepted, totals.drafted);
  EXPECT_GT(per_run(totals.stop_strings), 0.1);
  EXPECT_GT(per_run(totals.prompt_scores), 0.1);
}

// Not left to chance: small workloads with one fault at each of their steps.
TEST(CoreSimulation, AFaultAtEveryStepHurtsNobodyElse) {
  const uint64_t seeds = std::getenv("QUIRE_FULL") != nullptr ? 300 : 10;
  using Kind = CoreFault::Kind;
  int64_t struck = 0;
  int64_t runs = 0;
  for (uint64_t seed = 1'000'000; seed < 1'000'000 + seeds; ++seed) {
    CoreTotals clean;
    ASSERT_EQ(simulate_core(seed, clean), "") << "seed " << seed;
    CoreTotals faulty;
    for (int64_t step = 0; step < clean.steps; ++step) {
      for (const Kind kind : {Kind::kCancelBetween, Kind::kCancelInStep, Kind::kCancelFromEvent, Kind::kFailStep}) {
        for (int64_t victim = 0; victim < (kind == Kind::kFailStep ? 1 : 3); ++victim) {
          ASSERT_EQ(simulate_core(seed, faulty, {kind, step, victim}), "")
              << "seed " << seed << ", fault " << static_cast<int>(kind) << " in step " << step << ", victim "
              << victim;
        }
      }
    }
    struck += faulty.failed + faulty.cancelled;
    runs += faulty.runs;
  }
  EXPECT_GT(struck, runs / 2) << "most faults must hit something";
}

}  // namespace
}  // namespace quire
