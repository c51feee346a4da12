#include "sched/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace quire {
namespace {

constexpr int64_t kMillisecond = 1'000'000;

KvCacheConfig cache_of(int64_t pages) {
  KvCacheConfig config;
  config.groups = {{pages, 0, 1}};
  config.max_sequence_tokens = 4096;
  config.hash_key = {1, 2};
  return config;
}

SequenceSpec prompt_of(int64_t size, int64_t max_tokens, int32_t first = 1) {
  SequenceSpec spec;
  spec.prompt.resize(static_cast<size_t>(size));
  std::iota(spec.prompt.begin(), spec.prompt.end(), first);
  spec.max_tokens = max_tokens;
  return spec;
}

// Runs steps that sample the token 9 and remembers what happened to whom.
class SchedulerTest : public ::testing::Test {
 protected:
  void start(SchedulerConfig config, KvCacheConfig cache) {
    auto created = Scheduler::create(config, std::move(cache));
    ASSERT_TRUE(created.ok()) << created.status().message();
    scheduler_ = std::move(*created);
  }
  void start(PolicyConfig policy, int64_t max_seqs = 8, int64_t max_step_rows = 64, int64_t pages = 512) {
    SchedulerConfig config;
    config.policy = std::move(policy);
    config.max_seqs = max_seqs;
    config.max_step_rows = max_step_rows;
    start(config, cache_of(pages));
  }

  SequenceId submit(SequenceSpec spec) {
    const auto id = scheduler_->submit(std::move(spec), now_ns_);
    EXPECT_TRUE(id.ok()) << id.status().message();
    return id.ok() ? *id : 0;
  }

  // The rows of each sequence in the next step; empty when there is none.
  std::map<SequenceId, int64_t> step(int64_t step_ns = 20 * kMillisecond) {
    now_ns_ += 20 * kMillisecond;
    plan_ = scheduler_->plan(now_ns_);
    std::map<SequenceId, int64_t> rows;
    std::vector<SampleResult> results;
    for (const PlanRow& row : plan_.rows) {
      rows[row.id] = row.rows;
      for (int64_t j = 0; j < row.samples; ++j) results.push_back({row.id + j, kSampled, false});
    }
    EXPECT_TRUE(scheduler_->check_invariants().ok()) << scheduler_->check_invariants().message();
    if (plan_.empty()) return rows;
    note(scheduler_->commit(results, step_ns));
    return rows;
  }

  void note(const StepOutcome& outcome) {
    for (const auto& finished : outcome.finished) {
      EXPECT_TRUE(finished_.emplace(finished.id, finished).second) << "finished twice";
    }
    EXPECT_TRUE(scheduler_->check_invariants().ok()) << scheduler_->check_invariants().message();
  }

  void run_to_end() {
    for (int i = 0; i < 10'000 && !step().empty(); ++i) {
    }
  }

  static constexpr int32_t kToken = 9;
  static constexpr std::span<const int32_t> kSampled{&kToken, 1};
  std::unique_ptr<Scheduler> scheduler_;
  StepPlan plan_;
  std::map<SequenceId, StepOutcome::Finished> finished_;
  int64_t now_ns_ = 0;
};

using Rows = std::map<SequenceId, int64_t>;

TEST_F(SchedulerTest, KnowsWhatCouldRunAlone) {
  start({}, 8, 64, 20);
  EXPECT_FALSE(scheduler_->fits(prompt_of(0, 5)));
  EXPECT_FALSE(scheduler_->fits(prompt_of(5, -1)));
  EXPECT_TRUE(scheduler_->fits(prompt_of(300, 21))) << "the last token is never computed";
  EXPECT_FALSE(scheduler_->fits(prompt_of(300, 22))) << "the pool has 320 slots";
  EXPECT_FALSE(scheduler_->fits(prompt_of(300, INT64_MAX)));
  SequenceSpec many = prompt_of(5, 5);
  many.branches = 9;
  EXPECT_FALSE(scheduler_->fits(many));
  start({});
  EXPECT_TRUE(scheduler_->fits(prompt_of(4096, 1)));
  EXPECT_FALSE(scheduler_->fits(prompt_of(4000, 98))) << "the context has 4096";
}

TEST_F(SchedulerTest, RefusesConfigurationsThatCannotRun) {
  const auto code = [](SchedulerConfig config, int64_t pages) {
    return Scheduler::create(config, cache_of(pages)).status().code();
  };
  EXPECT_EQ(code({.max_seqs = 0}, 10), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.max_seqs = 32, .max_step_rows = 31}, 10), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.policy = {.kind = PolicyKind::kStatic, .batch_size = 33}}, 10), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({}, 0), StatusCode::kResourceExhausted);
  EXPECT_EQ(code({}, 1), StatusCode::kOk);
}

TEST_F(SchedulerTest, TheQueueIsBoundedByCountAndTokens) {
  SchedulerConfig config;
  config.queue = {.max_requests = 2, .max_tokens = 100};
  start(config, cache_of(512));
  submit(prompt_of(90, 1));
  EXPECT_EQ(scheduler_->submit(prompt_of(20, 1), 0).status().code(), StatusCode::kResourceExhausted);
  submit(prompt_of(10, 1));
  EXPECT_EQ(scheduler_->submit(prompt_of(1, 1), 0).status().code(), StatusCode::kResourceExhausted);
  step();
  EXPECT_EQ(scheduler_->gauges().queued_tokens, 0);
  submit(prompt_of(200, 1));  // more than the limit, but nothing else waits
}

TEST_F(SchedulerTest, FinishesByLengthStopAndScoring) {
  start({});
  const SequenceId by_length = submit(prompt_of(5, 3));
  const SequenceId scored = submit(prompt_of(40, 0));
  run_to_end();
  EXPECT_EQ(finished_.at(by_length).reason, FinishReason::kLength);
  EXPECT_EQ(finished_.at(by_length).facts.output_tokens, 3);
  EXPECT_EQ(finished_.at(scored).facts.output_tokens, 0);
  const SequenceId stopped = submit(prompt_of(5, 100, 50));
  scheduler_->plan(now_ns_);
  const SampleResult result{stopped, kSampled, true};
  note(scheduler_->commit({&result, 1}, 0));
  EXPECT_EQ(finished_.at(stopped).reason, FinishReason::kStopped);
  EXPECT_EQ(scheduler_->find(stopped), nullptr);
}

TEST_F(SchedulerTest, MixedDealsDecodesFirstAndHalvesWhatIsLeft) {
  start({.decode_stretch_percent = 100'000}, 8, 64);
  const SequenceId decode = submit(prompt_of(1, 100));
  EXPECT_EQ(step(), (Rows{{decode, 1}}));
  const SequenceId long_prompt = submit(prompt_of(1000, 1, 100));
  const SequenceId short_prompt = submit(prompt_of(10, 1, 2000));
  // 63 rows are left: the first prompt gets half, the last one what it needs, and the rest goes back to the first.
  EXPECT_EQ(step(), (Rows{{decode, 1}, {long_prompt, 53}, {short_prompt, 10}}));
  EXPECT_TRUE(finished_.contains(short_prompt));
  EXPECT_EQ(step(), (Rows{{decode, 1}, {long_prompt, 63}}));
}

TEST_F(SchedulerTest, AnEarlyLongPromptDoesNotStarveLaterDecodes) {
  start({.decode_stretch_percent = 100'000}, 8, 8);
  const SequenceId long_prompt = submit(prompt_of(500, 1));
  step();
  std::vector<SequenceId> chats;
  for (int i = 0; i < 6; ++i) chats.push_back(submit(prompt_of(1, 50, 1000 * (i + 1))));
  for (int i = 0; i < 8; ++i) step();
  const Rows rows = step();
  for (const SequenceId chat : chats) EXPECT_TRUE(rows.contains(chat));
  EXPECT_EQ(rows.at(long_prompt), 2);
}

TEST_F(SchedulerTest, ContinuousRunsPromptsAloneAndFirst) {
  start({.kind = PolicyKind::kContinuous}, 8, 64);
  const SequenceId decode = submit(prompt_of(4, 100));
  step();
  EXPECT_EQ(step(), (Rows{{decode, 1}}));
  const SequenceId prompt = submit(prompt_of(100, 5, 100));
  EXPECT_EQ(step(), (Rows{{prompt, 64}}));
  EXPECT_EQ(step(), (Rows{{prompt, 36}}));
  EXPECT_EQ(step(), (Rows{{decode, 1}, {prompt, 1}}));
}

TEST_F(SchedulerTest, StaticSkipsFinishedRowsAndStartsWholeBatches) {
  start({.kind = PolicyKind::kStatic, .batch_size = 3, .max_delay_ns = 1000 * kMillisecond});
  const SequenceId a = submit(prompt_of(4, 2));
  const SequenceId b = submit(prompt_of(4, 4, 100));
  EXPECT_TRUE(step().empty());
  EXPECT_EQ(plan_.wake_at_ns, 1000 * kMillisecond);
  const SequenceId c = submit(prompt_of(4, 4, 200));
  const SequenceId d = submit(prompt_of(4, 1, 300));
  EXPECT_EQ(step(), (Rows{{a, 4}, {b, 4}, {c, 4}}));
  EXPECT_EQ(step(), (Rows{{a, 1}, {b, 1}, {c, 1}}));
  EXPECT_TRUE(finished_.contains(a));
  EXPECT_EQ(step(), (Rows{{b, 1}, {c, 1}}));
  EXPECT_EQ(step(), (Rows{{b, 1}, {c, 1}}));
  EXPECT_TRUE(step().empty()) << "one that waits is no batch";
  now_ns_ = plan_.wake_at_ns;
  EXPECT_EQ(step(), (Rows{{d, 4}}));
}

TEST_F(SchedulerTest, ABatchLargerThanAStepStillStartsWhole) {
  start({.kind = PolicyKind::kStatic, .batch_size = 4}, 8, 10);
  for (int i = 0; i < 5; ++i) submit(prompt_of(8, 3, 100 * i));
  while (scheduler_->gauges().waiting > 1) ASSERT_FALSE(step().empty());
  EXPECT_EQ(scheduler_->gauges().running, 4);
  step();
  EXPECT_EQ(scheduler_->gauges().waiting, 1);
}

TEST_F(SchedulerTest, PaddedComputesFinishedRowsUntilTheBatchEnds) {
  start({.kind = PolicyKind::kStaticPadded, .batch_size = 2});
  const SequenceId a = submit(prompt_of(4, 2));
  const SequenceId b = submit(prompt_of(4, 5, 100));
  step();
  step();
  ASSERT_TRUE(finished_.contains(a)) << "its client hears at once";
  EXPECT_EQ(step(), (Rows{{a, 1}, {b, 1}}));
  EXPECT_TRUE(plan_.rows.back().padding);
  EXPECT_EQ(plan_.rows.back().samples, 0);
  EXPECT_EQ(scheduler_->cancel(a), CancelResult::kUnknown);
  run_to_end();
  EXPECT_EQ(scheduler_->counters().wasted_rows, 3);
  EXPECT_EQ(scheduler_->kv_usage(0).used_slots, 0);
}

TEST_F(SchedulerTest, AWarmPrefixIsSharedWhileItsFirstRequestStillRuns) {
  start({.decode_stretch_percent = 100'000}, 8, 512);
  submit(prompt_of(1550, 100));
  for (int i = 0; i < 4; ++i) step();
  SequenceSpec warm = prompt_of(1500, 10);
  for (int32_t i = 0; i < 50; ++i) warm.prompt.push_back(5000 + i);
  const SequenceId second = submit(std::move(warm));
  EXPECT_EQ(step().at(second), 50 + 1500 % 16);
  ASSERT_EQ(plan_.admitted.size(), 1u);
  EXPECT_EQ(plan_.admitted[0].cached_tokens, 1488);
  EXPECT_EQ(plan_.admitted[0].match.end, MatchEnd::kDifferent);
  EXPECT_EQ(plan_.admitted[0].match.differs_at, 1500);
  EXPECT_EQ(scheduler_->counters().prefix_hit_tokens, 1488);
  EXPECT_EQ(scheduler_->counters().prefix_query_tokens, 3100);
  EXPECT_EQ(scheduler_->find(second)->facts.cached_tokens, 1488);
}

TEST_F(SchedulerTest, PreemptionTakesTheLastAndItResumesFromTheCache) {
  SchedulerConfig config;
  config.project_peak = false;
  config.max_step_rows = 256;
  start(config, cache_of(6));
  const SequenceId first = submit(prompt_of(30, 40));
  const SequenceId second = submit(prompt_of(30, 40, 500));
  int64_t preempted_in = -1;
  for (int i = 0; i < 200 && finished_.size() < 2; ++i) {
    step();
    for (const auto& preempted : plan_.preempted) {
      EXPECT_EQ(preempted.id, second);
      preempted_in = i;
    }
  }
  EXPECT_GT(preempted_in, 0);
  EXPECT_EQ(finished_.at(first).facts.preemptions, 0);
  EXPECT_EQ(finished_.at(second).facts.preemptions, 1);
  EXPECT_EQ(finished_.at(second).facts.output_tokens, 40);
  EXPECT_GT(finished_.at(second).facts.recomputed_tokens, 0);
  EXPECT_EQ(scheduler_->counters().recomputed_tokens, finished_.at(second).facts.recomputed_tokens);
}

TEST_F(SchedulerTest, TheProjectionAvoidsThatPreemption) {
  start({}, 8, 64, 6);
  submit(prompt_of(30, 40));
  submit(prompt_of(30, 40, 500));
  run_to_end();
  EXPECT_EQ(finished_.size(), 2u);
  EXPECT_EQ(scheduler_->counters().preemptions, 0);
}

TEST_F(SchedulerTest, PriorityGoesFirstButAgeCatchesUp) {
  SchedulerConfig config;
  config.max_seqs = 1;
  config.aging_ns = 100 * kMillisecond;
  start(config, cache_of(512));
  const auto submit_as = [&](int64_t priority) {
    SequenceSpec spec = prompt_of(4, 1, static_cast<int32_t>(now_ns_ / kMillisecond));
    spec.priority = priority;
    return submit(std::move(spec));
  };
  const SequenceId patient = submit_as(2);
  now_ns_ = 150 * kMillisecond;
  const SequenceId urgent = submit_as(0);
  now_ns_ = 250 * kMillisecond;
  const SequenceId late = submit_as(0);
  std::vector<SequenceId> order;
  while (finished_.size() < 3) order.push_back(step().begin()->first);
  EXPECT_EQ(order, (std::vector<SequenceId>{urgent, patient, late}));
}

TEST_F(SchedulerTest, BranchesForkAtTheEndOfThePrompt) {
  start({}, 3, 64);
  SequenceSpec spec = prompt_of(20, 4);
  spec.branches = 3;
  const SequenceId first = submit(std::move(spec));
  const SequenceId other = submit(prompt_of(4, 2, 100));
  EXPECT_EQ(other, first + 3);
  scheduler_->plan(0);
  std::vector<SampleResult> results;
  for (int64_t j = 0; j < 3; ++j) results.push_back({first + j, kSampled, false});
  results.push_back({other, kSampled, false});
  const StepOutcome& outcome = scheduler_->commit(results, 0);
  EXPECT_EQ(outcome.forked, (std::vector<SequenceId>{first + 1, first + 2}));
  EXPECT_EQ(scheduler_->gauges().running, 3) << "one branch waits for a slot";
  EXPECT_EQ(scheduler_->gauges().preempted, 1);
  EXPECT_EQ(scheduler_->kv_usage(0).used_slots, 3 * 16) << "two pages of the prompt, one of the other";
  step();
  EXPECT_EQ(plan_.moves.size(), 1u);
  run_to_end();
  for (int64_t j = 0; j < 3; ++j) EXPECT_EQ(finished_.at(first + j).facts.output_tokens, 4);
  EXPECT_EQ(scheduler_->kv_usage(0).used_slots, 0);
}

TEST_F(SchedulerTest, DraftsAreVerifiedAndRolledBackByTheCounter) {
  start({});
  const SequenceId id = submit(prompt_of(15, 6));
  step();
  scheduler_->set_draft(id, std::vector<int32_t>{9, 9, 8, 9, 9, 9, 9, 9});
  const StepPlan& plan = scheduler_->plan(now_ns_);
  ASSERT_EQ(plan.rows.size(), 1u);
  EXPECT_EQ(plan.rows[0].draft_rows, 4) << "five tokens may still come, one of them without a draft";
  EXPECT_EQ(plan.rows[0].logit_rows, 5);
  EXPECT_EQ(plan.tokens, (std::vector<int32_t>{9, 9, 9, 8, 9}));
  const std::vector<int32_t> run = {9, 9, 7};
  const SampleResult result{id, run, false};
  note(scheduler_->commit({&result, 1}, 0));
  EXPECT_EQ(scheduler_->find(id)->size(), 19);
  EXPECT_EQ(scheduler_->find(id)->computed, 18);
  EXPECT_EQ(scheduler_->counters().drafted_tokens, 4);
  EXPECT_EQ(scheduler_->counters().accepted_tokens, 2);
}

TEST_F(SchedulerTest, CancelWorksInEveryState) {
  start({}, 2, 64);
  const SequenceId running = submit(prompt_of(40, 50));
  const SequenceId planned = submit(prompt_of(40, 50, 100));
  const SequenceId waiting = submit(prompt_of(40, 50, 200));
  step();
  EXPECT_EQ(scheduler_->cancel(waiting), CancelResult::kDone);
  EXPECT_EQ(scheduler_->gauges().queued_tokens, 0);
  EXPECT_EQ(scheduler_->cancel(waiting), CancelResult::kUnknown);
  EXPECT_EQ(scheduler_->cancel(running), CancelResult::kDone);
  scheduler_->plan(now_ns_);
  EXPECT_EQ(scheduler_->cancel(planned), CancelResult::kAtCommit);
  EXPECT_EQ(scheduler_->cancel(planned), CancelResult::kAtCommit);
  note(scheduler_->fail_step());
  EXPECT_EQ(finished_.at(planned).reason, FinishReason::kCancelled);
  EXPECT_EQ(finished_.size(), 1u);
  EXPECT_EQ(scheduler_->kv_usage(0).used_slots, 0);
}

TEST_F(SchedulerTest, AFailingStepFailsItsOwnSequencesAndPublishesNothing) {
  start({}, 1, 64);
  const SequenceId failing = submit(prompt_of(40, 5));
  const SequenceId waiting = submit(prompt_of(40, 5));
  scheduler_->plan(now_ns_);
  note(scheduler_->fail_step());
  EXPECT_EQ(finished_.at(failing).reason, FinishReason::kFailed);
  EXPECT_EQ(scheduler_->kv_usage(0).findable_pages, 0);
  EXPECT_EQ(step().at(waiting), 40) << "the same prompt finds nothing of the failed one";
  run_to_end();
  EXPECT_EQ(finished_.at(waiting).reason, FinishReason::kLength);
}

TEST_F(SchedulerTest, PromptLogitsComputeEveryRowButStillShare) {
  start({}, 8, 64);
  submit(prompt_of(40, 1));
  step();
  SequenceSpec spec = prompt_of(40, 1);
  spec.prompt_logits = true;
  submit(spec);
  step();
  EXPECT_EQ(plan_.rows[0].logit_rows, 40);
  EXPECT_EQ(plan_.admitted[0].match.end, MatchEnd::kDisabled);
}

TEST_F(SchedulerTest, ContiguousRunsFewerAtOnce) {
  KvCacheConfig cache = cache_of(600);
  cache.layout = KvLayout::kContiguous;
  cache.prefix_caching = false;
  start(SchedulerConfig{}, cache);
  for (int i = 0; i < 4; ++i) submit(prompt_of(20, 5, 100 * i));
  EXPECT_EQ(step().size(), 2u) << "600 pages hold two reservations of 256";
  EXPECT_EQ(scheduler_->kv_usage(0).used_slots, 2 * 4096);
  EXPECT_EQ(scheduler_->kv_usage(0).live_slots, 2 * 20);
  run_to_end();
  EXPECT_EQ(finished_.size(), 4u);
}

}  // namespace
}  // namespace quire
