// Single promises of EngineCore, each in the smallest setting; the simulation beside it holds their sum.
#include "engine/engine_core.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "engine/hash_chain_executor.h"

namespace quire {
namespace {

constexpr int64_t kMillisecond = 1'000'000;

class CoreTest : public ::testing::Test {
 protected:
  void start(SchedulerConfig config = {}) {
    KvCacheConfig cache;
    cache.groups = {{64, 0, 1}};
    cache.max_sequence_tokens = 200;
    cache.hash_key = {1, 2};
    executor_ = std::make_unique<HashChainExecutor>(cache);
    executor_->salt_of = [](SequenceId) { return 0; };
    auto scheduler = std::move(*Scheduler::create(config, cache));
    const RequestLimits limits = RequestLimits::of(*scheduler, kVocabulary, 200, 0);
    core_ = std::make_unique<EngineCore>(std::move(scheduler), *executor_, *tokenizer_, limits, observer_);
  }
  ~CoreTest() override {
    if (core_) core_->cancel_all(cancelled("the test ends"), now_ns_);
  }

  static Request request_of(const std::string& id, int64_t max_tokens) {
    Request request;
    request.id = id;
    request.prompt = {1, 2, 3};
    request.max_tokens = max_tokens;
    request.ignore_eos = true;
    return request;
  }
  Status submit(const Request& request) {
    return core_->submit(
        request, [this, id = request.id](const Event& event) { events_[id].push_back(event); }, now_ns_);
  }
  bool step() {
    return core_->step([this] { return now_ns_ += kMillisecond; });
  }
  void run() {
    for (int i = 0; i < 1000 && core_->live_requests() > 0; ++i) step();
    EXPECT_EQ(core_->live_requests(), 0u);
  }
  StatusCode end_of(const std::string& id) {
    const auto found = events_.find(id);
    if (found == events_.end()) return StatusCode::kNotFound;
    const Event& last = found->second.back();
    EXPECT_TRUE(last.kind == Event::Kind::kFinished || last.kind == Event::Kind::kFailed);
    return last.error.code();
  }
  std::vector<int32_t> ids_of(const std::string& id) {
    std::vector<int32_t> ids;
    for (const Event& event : events_[id]) ids.insert(ids.end(), event.ids.begin(), event.ids.end());
    return ids;
  }

  std::unique_ptr<Tokenizer> tokenizer_ = letter_tokenizer();
  EngineObserver observer_;
  std::unique_ptr<HashChainExecutor> executor_;
  std::unique_ptr<EngineCore> core_;
  std::map<std::string, std::vector<Event>> events_;
  int64_t now_ns_ = 1;
};

TEST_F(CoreTest, ADeadlineEndsARunningRequest) {
  start();
  Request request = request_of("a", 100);
  request.deadline_ms = 50;
  ASSERT_TRUE(submit(request).ok());
  step();
  EXPECT_FALSE(ids_of("a").empty());
  now_ns_ += 60 * kMillisecond;
  step();
  EXPECT_EQ(end_of("a"), StatusCode::kDeadlineExceeded);
}

TEST_F(CoreTest, TimeInTheQueueRunsOutOnlyWhileWaiting) {
  start({.max_seqs = 1});
  Request first = request_of("first", 100);
  Request second = request_of("second", 100);
  first.max_queue_ms = second.max_queue_ms = 50;
  ASSERT_TRUE(submit(first).ok());
  ASSERT_TRUE(submit(second).ok());
  step();
  now_ns_ += 60 * kMillisecond;
  step();
  EXPECT_EQ(end_of("second"), StatusCode::kResourceExhausted);
  EXPECT_EQ(core_->live_requests(), 1u) << "the first was started in time";
}

TEST_F(CoreTest, SleepsNoLongerThanADeadline) {
  start({.policy = {.kind = PolicyKind::kStatic, .batch_size = 2, .max_delay_ns = 1'000'000 * kMillisecond}});
  Request request = request_of("a", 5);
  request.deadline_ms = 70;
  ASSERT_TRUE(submit(request).ok());
  EXPECT_FALSE(step()) << "the batch is not full";
  EXPECT_LE(core_->wake_at_ns(), 1 + 70 * kMillisecond);
}

// An EOS that is ignored ends nothing, so it may come before min_tokens; a stop token ends the answer, so it may not.
TEST_F(CoreTest, MinTokensMasksWhatWouldEndTheAnswer) {
  start();
  Request request = request_of("ignored", 40);
  request.sampling.min_tokens = 40;
  request.sampling.logit_bias = {{kEndToken, 100}};
  request.ignore_eos = true;
  ASSERT_TRUE(submit(request).ok());
  request.id = "obeyed";
  request.ignore_eos = false;
  ASSERT_TRUE(submit(request).ok());
  request.id = "stop token";
  request.ignore_eos = true;
  request.stop_token_ids = {kEndToken};
  ASSERT_TRUE(submit(request).ok());
  run();
  EXPECT_EQ(ids_of("ignored"), std::vector<int32_t>(40, kEndToken));
  for (const char* id : {"obeyed", "stop token"}) {
    EXPECT_EQ(ids_of(id).size(), 40u) << id;
    EXPECT_EQ(std::ranges::count(ids_of(id), kEndToken), 0) << id;
  }
}

TEST_F(CoreTest, AnswersOfNoTokensEndOnceForAllChoices) {
  start();
  Request request = request_of("a", 0);
  request.choices = 3;
  request.prompt_logprobs = true;
  ASSERT_TRUE(submit(request).ok());
  run();
  EXPECT_EQ(end_of("a"), StatusCode::kOk);
  EXPECT_EQ(std::ranges::count(events_["a"], Event::Kind::kChoiceFinished, &Event::kind), 3);
}

TEST_F(CoreTest, DraftsThatAreRightSaveStepsAndChangeNothing) {
  start();
  ASSERT_TRUE(submit(request_of("plain", 30)).ok());
  int64_t plain_steps = 0;
  while (core_->live_requests() > 0) plain_steps += step();
  const std::vector<int32_t> text = ids_of("plain");
  core_->set_drafter([&](const Request&, int32_t, std::span<const int32_t> tokens) {
    const size_t done = tokens.size() - 3;
    return std::vector<int32_t>(text.begin() + static_cast<std::ptrdiff_t>(done),
                                text.begin() + static_cast<std::ptrdiff_t>(std::min<size_t>(done + 4, text.size())));
  });
  ASSERT_TRUE(submit(request_of("drafted", 30)).ok());
  int64_t drafted_steps = 0;
  while (core_->live_requests() > 0) drafted_steps += step();
  EXPECT_EQ(ids_of("drafted"), text);
  EXPECT_LT(drafted_steps, plain_steps / 3);
  EXPECT_EQ(core_->scheduler().counters().accepted_tokens, core_->scheduler().counters().drafted_tokens);
}

TEST_F(CoreTest, WhatIsDraftedBehindAStopStringIsNoneOfTheText) {
  start();
  ASSERT_TRUE(submit(request_of("whole", 30)).ok());
  run();
  const std::vector<int32_t> text = ids_of("whole");
  core_->set_drafter([&](const Request&, int32_t, std::span<const int32_t> tokens) {
    return std::vector<int32_t>(text.begin() + static_cast<std::ptrdiff_t>(tokens.size() - 3), text.end());
  });
  Request request = request_of("stopped", 30);
  const std::string third(1, kLetters[static_cast<size_t>(text[10])]);
  request.stop = *StopTexts::create({third});
  ASSERT_TRUE(submit(request).ok());
  run();
  const std::vector<int32_t> heard = ids_of("stopped");
  const auto first = std::ranges::find(text, text[10]);
  EXPECT_EQ(heard, std::vector<int32_t>(text.begin(), first + 1));
  EXPECT_LT(core_->scheduler().counters().accepted_tokens, static_cast<int64_t>(heard.size())) << "nor counted";
}

// An executor that counts how often it is asked, and answers with nonsense.
class BrokenExecutor final : public Executor {
 public:
  int64_t vocab_size() const override { return kVocabulary; }
  Result<StepResult> run(const StepPlan& plan, const StepSampling&) override {
    StepResult result;
    for (const PlanRow& row : plan.rows) {
      RowResult& one = result.rows.emplace_back();
      for (int32_t j = 0; j < row.samples; ++j)
        one.sequences.push_back(
            {.id = row.id + j, .tokens = {}, .logprobs = {}, .status = corrupt("no logit is finite")});
    }
    return result;
  }
};

TEST_F(CoreTest, NonsenseFromTheModelFailsTheRequestAndItsBranches) {
  start();
  BrokenExecutor broken;
  KvCacheConfig cache;
  cache.groups = {{64, 0, 1}};
  cache.max_sequence_tokens = 200;
  auto scheduler = std::move(*Scheduler::create({}, cache));
  const RequestLimits limits = RequestLimits::of(*scheduler, kVocabulary, 200, 0);
  core_ = std::make_unique<EngineCore>(std::move(scheduler), broken, *tokenizer_, limits, observer_);
  Request request = request_of("a", 5);
  request.choices = 3;
  ASSERT_TRUE(submit(request).ok());
  step();
  EXPECT_EQ(end_of("a"), StatusCode::kCorrupt);
  EXPECT_EQ(core_->scheduler().gauges().running, 0);
  EXPECT_EQ(core_->scheduler().kv_usage(0).used_slots, 0);
}

}  // namespace
}  // namespace quire
