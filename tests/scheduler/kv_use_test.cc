// How much of the KV memory that running requests hold has tokens in it, under a trace of chats: pages against the
// consecutive reservation that they replace.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <random>
#include <vector>

#include "sched/scheduler.h"

namespace quire {
namespace {

constexpr int64_t kStepNs = 20'000'000;
constexpr int64_t kContext = 4096;
constexpr int64_t kSequences = 16;
constexpr int64_t kAllowedAnswer = 512;  // what clients write as max_tokens
constexpr int kSteps = 20'000;
constexpr double kWantedLive = 0.96;
constexpr double kWantedTokens = 300;  // per running request, so that the last page of each weighs as in a chat

struct KvUse {
  double live = 0;  // of the used slots, over all steps
  double tokens_per_sequence = 0;
  double running = 0;
};

// Prompts of log-normal length (median 270 tokens: instructions and some turns), answers of exponential length that end
// on their own; a new request whenever a slot is free.
KvUse measure(KvLayout layout) {
  SchedulerConfig config;
  config.max_seqs = kSequences;
  KvCacheConfig cache;
  cache.groups = {{kSequences * kContext / 16, 0, 1}};
  cache.max_sequence_tokens = kContext;
  cache.layout = layout;
  cache.prefix_caching = layout == KvLayout::kPaged;
  auto scheduler = std::move(*Scheduler::create(config, cache));
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> prompt_size(std::log(270.0), 0.6);
  std::bernoulli_distribution ends(1.0 / 150.0);
  const int32_t token = 7;
  std::vector<SampleResult> results;
  double live = 0;
  double used = 0;
  double running = 0;
  for (int step = 0; step < kSteps; ++step) {
    const int64_t now_ns = step * kStepNs;
    while (scheduler->gauges().running + scheduler->gauges().waiting < kSequences) {
      SequenceSpec spec;
      const auto size = std::clamp<int64_t>(std::llround(prompt_size(random)), 8, kContext - kAllowedAnswer);
      for (int64_t i = 0; i < size; ++i) spec.prompt.push_back(static_cast<int32_t>(random() % 30'000));
      spec.max_tokens = kAllowedAnswer;
      EXPECT_TRUE(scheduler->submit(std::move(spec), now_ns).ok());
    }
    const StepPlan& plan = scheduler->plan(now_ns);
    results.clear();
    for (const PlanRow& row : plan.rows) {
      if (row.samples > 0) results.push_back({row.id, {&token, 1}, ends(random)});
    }
    scheduler->commit(results, kStepNs);
    const KvUsage usage = scheduler->kv_usage(0);
    live += static_cast<double>(usage.live_slots);
    used += static_cast<double>(usage.used_slots);
    running += static_cast<double>(scheduler->gauges().running);
  }
  return {live / used, live / running, running / kSteps};
}

TEST(KvUse, PagesHoldTokensAndReservationsHoldHope) {
  const KvUse paged = measure(KvLayout::kPaged);
  const KvUse contiguous = measure(KvLayout::kContiguous);
  for (const auto& [name, use] : {std::pair{"paged", paged}, std::pair{"contiguous", contiguous}}) {
    std::cout << "kv " << name << ": " << 100 * use.live << " % of used slots live, " << use.tokens_per_sequence
              << " live tokens a request, " << use.running << " running\n";
  }
  EXPECT_GE(paged.tokens_per_sequence, kWantedTokens);
  EXPECT_GE(paged.live, kWantedLive);
  EXPECT_LT(contiguous.live, 0.8);
}

}  // namespace
}  // namespace quire
