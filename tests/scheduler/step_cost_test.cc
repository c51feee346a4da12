// What scheduler and cache themselves cost: at most 60 microseconds of processor time a step at 256 running sequences, in
// an optimised build. The median is held against the limit, since single steps meet cold caches and interrupts.
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <iostream>
#include <random>
#include <span>
#include <vector>

#include "sched/scheduler.h"

namespace quire {
namespace {

constexpr int64_t kSequences = 256;
constexpr double kLimitMicroseconds = 60;
constexpr int kSteps = 2000;
constexpr int kRounds = 20;

double thread_microseconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) * 1e-3;
}

// Runs the scheduler under a steady load of 256 sequences; the median of what a full step took it.
double median_microseconds_of_a_step() {
  SchedulerConfig config;
  config.max_seqs = kSequences;
  config.max_step_rows = 512;
  KvCacheConfig cache;
  cache.groups = {{kSequences * 80, 0, 4}, {kSequences * 40, 512, 22}};
  cache.max_sequence_tokens = 4096;
  auto scheduler = std::move(*Scheduler::create(config, cache));
  std::mt19937 random(1);
  std::vector<double> microseconds;
  std::vector<SampleResult> results;
  int64_t now_ns = 0;
  const int32_t token = 5;
  for (int step = 0; step < kSteps; ++step) {
    now_ns += 20'000'000;
    // A new request for each that ended, so that prompts, decodes and admissions mix.
    while (scheduler->gauges().running + scheduler->gauges().waiting < kSequences + 8) {
      SequenceSpec spec;
      const size_t size = 20 + random() % 400;
      while (spec.prompt.size() < size) spec.prompt.push_back(static_cast<int32_t>(random() % 1000));
      spec.max_tokens = 50 + random() % 500;
      EXPECT_TRUE(scheduler->submit(std::move(spec), now_ns).ok());
    }
    const double before = thread_microseconds();
    const StepPlan& plan = scheduler->plan(now_ns);
    const double planned = thread_microseconds();
    results.clear();
    for (const PlanRow& row : plan.rows) {
      if (row.samples > 0) results.push_back({row.id, {&token, 1}, false});
    }
    const bool full = scheduler->gauges().running == kSequences;
    const double sampled = thread_microseconds();
    scheduler->commit(results, 20'000'000 + 100'000 * plan.shape.rows);
    const double after = thread_microseconds();
    if (full) microseconds.push_back(planned - before + (after - sampled));
  }
  EXPECT_GT(microseconds.size(), size_t{kSteps / 4});
  const auto middle = microseconds.begin() + static_cast<std::ptrdiff_t>(microseconds.size() / 2);
  std::nth_element(microseconds.begin(), middle, microseconds.end());
  return *middle;
}

// Other programs take caches and clock away for a while: the quietest round is what the code costs, and a round under the
// limit ends the test.
TEST(SchedulerCost, AStepOf256Sequences) {
  double quietest = median_microseconds_of_a_step();
  for (int round = 1; round < kRounds && quietest > kLimitMicroseconds; ++round) {
    quietest = std::min(quietest, median_microseconds_of_a_step());
  }
  std::cout << "scheduler and cache: median " << quietest << " us a step at " << kSequences << " sequences\n";
#if defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LE(quietest, kLimitMicroseconds);
#endif
}

}  // namespace
}  // namespace quire
