// Memory that runs out at each allocation in turn within the engine's core.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>

#include "engine/engine_core.h"
#include "engine/hash_chain_executor.h"
#include "support/failing_memory.h"

namespace quire {
namespace {

// Every one of the first allocations, then ever fewer.
int64_t after(int64_t k) { return k + 1 + k / 64; }

// The engine's core without weights, driven by a clock that counts.
class Core {
 public:
  Core() {
    KvCacheConfig cache;
    cache.groups = {{64, 0, 1}};
    cache.max_sequence_tokens = 200;
    cache.hash_key = {1, 2};
    executor_ = std::make_unique<HashChainExecutor>(cache);
    executor_->salt_of = [](SequenceId) { return 0; };
    auto scheduler = std::move(*Scheduler::create({}, cache));
    const RequestLimits limits = RequestLimits::of(*scheduler, kVocabulary, 200, 0);
    core_ = std::make_unique<EngineCore>(std::move(scheduler), *executor_, *tokenizer_, limits, observer_);
  }
  ~Core() { core_->cancel_all(cancelled("the test ends"), now_ns_); }

  // The text of two choices, or why there is none.
  Result<std::string> ask(const std::string& id) {
    std::string text;
    Status ended;
    QUIRE_RETURN_IF_ERROR(submit(request_of(id), &text, &ended));
    run();
    if (!ended.ok()) return ended;
    return text;
  }
  // False: submit() has no `k`-th allocation.
  bool fails_to_submit(int64_t k, bool lasting) {
    std::string text;
    Status ended;
    Request request = request_of("fails");
    bool failed = false, taken = false;
    {
      const FailingMemory failing(k, lasting);
      try {
        taken = submit(std::move(request), &text, &ended).ok();
      } catch (const std::bad_alloc&) {
      }
      failed = failing.failed();
    }
    if (taken) give_up();
    return failed;
  }
  // The same of a step's forward pass and sampling: the request ends with an error. None: they have no `k`-th allocation.
  std::optional<StatusCode> fails_to_run(int64_t k, bool lasting) {
    std::string text;
    Status ended;
    EXPECT_TRUE(submit(request_of("fails"), &text, &ended).ok());
    std::optional<FailingMemory> failing;
    executor_->during_run = [&](const StepPlan&) {
      failing.emplace(k, lasting);
      return true;
    };
    bool failed = false;
    run([&] {
      failed |= failing.has_value() && failing->failed();
      failing.reset();
    });
    executor_->during_run = nullptr;
    return failed ? std::optional(ended.code()) : std::nullopt;
  }
  std::string leftovers() const {
    const Status invariants = core_->scheduler().check_invariants();
    if (!invariants.ok()) return invariants.message();
    if (core_->live_requests() > 0) return "live requests";
    const auto gauges = core_->scheduler().gauges();
    if (gauges.running + gauges.waiting + gauges.preempted > 0) return "sequences without a request";
    // The executor hears of what has ended in the next step.
    return executor_->sampled_sequences() > 2 ? "samplers" : "";
  }

 private:
  static Request request_of(const std::string& id) {
    Request request;
    request.id = id;
    request.prompt = {1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3};
    request.max_tokens = 12;
    request.choices = 2;
    request.ignore_eos = true;
    request.stop = *StopTexts::create({"never said"});
    request.sampling.logit_bias = {{1, 1.0f}};
    return request;
  }
  Status submit(Request request, std::string* text, Status* ended) {
    return core_->submit(
        std::move(request),
        [text, ended](const Event& event) {
          text->append(event.choice == 0 ? "0" : "1").append(event.text);
          if (event.kind == Event::Kind::kFailed) *ended = event.error;
        },
        now_ns_);
  }
  // `after_run`: called wherever the core asks for the time, so after each forward pass.
  void run(const std::function<void()>& after_run = [] {}) {
    const auto clock = [&] {
      after_run();
      return now_ns_ += 1000;
    };
    for (int i = 0; i < 100 && core_->live_requests() > 0; ++i) core_->step(clock);
  }
  // What the engine's thread does where memory ran out.
  void give_up() { core_->cancel_all(resource_exhausted("no memory"), now_ns_); }

  std::unique_ptr<Tokenizer> tokenizer_ = letter_tokenizer();
  EngineObserver observer_;
  std::unique_ptr<HashChainExecutor> executor_;
  std::unique_ptr<EngineCore> core_;
  int64_t now_ns_ = 1;
};

// Within submit(): the request is refused, and the core is as before.
TEST(FailingMemory, SubmittingARequest) {
  Core core;
  const Result<std::string> expected = core.ask("first");
  ASSERT_TRUE(expected.ok()) << expected.status().message();
  int64_t struck = 0;
  for (const bool lasting : {false, true}) {
    for (int64_t k = 1;; ++k) {
      SCOPED_TRACE("allocation " + std::to_string(k) + (lasting ? " and all after it" : ""));
      if (!core.fails_to_submit(k, lasting)) break;
      ++struck;
      EXPECT_EQ(core.leftovers(), "");
      const Result<std::string> again = core.ask("again");
      ASSERT_TRUE(again.ok()) << again.status().message();
      EXPECT_EQ(*again, *expected);
    }
  }
  EXPECT_GT(struck, 10);
}

// Within a forward pass or sampling: the step fails with those in it, and the core goes on.
TEST(FailingMemory, RunningAStep) {
  Core core;
  const Result<std::string> expected = core.ask("first");
  ASSERT_TRUE(expected.ok()) << expected.status().message();
  int64_t struck = 0;
  for (const bool lasting : {false, true}) {
    for (int64_t k = 1;; k = after(k)) {
      SCOPED_TRACE("allocation " + std::to_string(k) + (lasting ? " and all after it" : ""));
      const std::optional<StatusCode> end = core.fails_to_run(k, lasting);
      if (!end) break;
      ++struck;
      EXPECT_EQ(*end, StatusCode::kResourceExhausted);
      ASSERT_EQ(core.leftovers(), "");
      const Result<std::string> again = core.ask("again");
      ASSERT_TRUE(again.ok()) << again.status().message();
      ASSERT_EQ(*again, *expected);
    }
  }
  EXPECT_GT(struck, 10);
}

}  // namespace
}  // namespace quire
