// The engine without threads and clocks: takes requests, plans and runs steps, turns tokens into text, and tells each
// request what became of it. Everything that could make a run differ from its replay - time, executor, drafts - comes in
// from outside, so whole runs can be simulated.
//
// Thread: one at a time (the engine thread). Events go out from within submit(), cancel() and step(). A listener may call
// cancel(), nothing else.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "engine/answer_text.h"
#include "engine/end_rate.h"
#include "engine/engine_observer.h"
#include "engine/event.h"
#include "engine/executor.h"
#include "engine/request.h"
#include "engine/request_limits.h"
#include "sched/scheduler.h"
#include "text/tokenizer.h"

namespace quire {

class EngineCore {
 public:
  using OnEvent = std::function<void(Event event)>;
  // Guesses what follows `tokens`, the prompt and output of one choice of a request. Empty: no guess.
  using Drafter =
      std::function<std::vector<int32_t>(const Request& request, int32_t choice, std::span<const int32_t> tokens)>;

  // The referenced objects outlive the core.
  EngineCore(std::unique_ptr<Scheduler> scheduler, Executor& executor, const Tokenizer& tokenizer,
             const RequestLimits& limits, EngineObserver& observer);
  ~EngineCore();

  // None by default. Guesses change no text, only how many steps it takes.
  void set_drafter(Drafter drafter) { drafter_ = std::move(drafter); }

  // Fails by RequestLimits, when a live request has the same id, or when the queue is full; then `on_event` hears nothing.
  // Otherwise it hears exactly one terminal event.
  Status submit(Request request, OnEvent on_event, int64_t now_ns);
  // Ends a request with `why`, in the middle of a step when that is done; unknown ids are ignored.
  void cancel(std::string_view id, const Status& why, int64_t now_ns);
  // Between steps only.
  void cancel_all(const Status& why, int64_t now_ns);

  // Runs one step, if there is anything to do. `clock` is read at its start and after the forward pass and sampling.
  // False: nothing to do before wake_at_ns() or the next call of submit().
  bool step(const std::function<int64_t()>& clock);
  int64_t wake_at_ns() const { return wake_at_ns_; }

  const RequestLimits& limits() const { return limits_; }
  size_t live_requests() const { return requests_.size(); }
  const Scheduler& scheduler() const { return *scheduler_; }
  // Requests that ended per second, of late; 0 before any did.
  double requests_per_second(int64_t now_ns) const { return ends_.per_second(now_ns); }

 private:
  struct Choice;
  struct LiveRequest;
  struct Branch {  // where a sequence's tokens go
    LiveRequest* request = nullptr;
    int32_t choice = 0;
  };
  struct Withdrawal {
    std::string id;
    Status why;
  };

  void expire(int64_t now_ns);
  void note_plan(const StepPlan& plan, int64_t now_ns);
  const StepSampling& sampling_of(const StepPlan& plan);
  Result<StepResult> run_step(const StepPlan& plan);
  void fail_step(const StepPlan& plan, const Status& why, int64_t now_ns);
  void commit_step(const StepPlan& plan, StepResult& result, int64_t step_ns, int64_t now_ns);
  // Delivers what the sequence was sampled and cuts it to what belongs to the text; returns whether it ends the choice.
  bool take_tokens(LiveRequest& request, int32_t choice, SampledSequence& sampled, int64_t now_ns);
  void note_token_times(LiveRequest& request, Choice& choice, int64_t now_ns);
  void set_drafts(const StepPlan& plan);
  void settle(const StepOutcome& outcome, int64_t now_ns);
  void finish_choice(LiveRequest& request, int32_t index, FinishReason reason, int64_t now_ns);
  void withdraw(LiveRequest& request, const Status& why, int64_t now_ns);
  void apply_withdrawals(int64_t now_ns);
  void end(LiveRequest& request, int64_t now_ns);
  bool ends_generation(const Request& request, int32_t token) const;
  void update_gauges();
  RequestTimings timings(const LiveRequest& request) const;

  std::unique_ptr<Scheduler> scheduler_;
  Executor& executor_;
  const Tokenizer& tokenizer_;
  const RequestLimits limits_;
  EngineObserver& observer_;
  Drafter drafter_;
  std::map<std::string, std::unique_ptr<LiveRequest>, std::less<>> requests_;
  std::unordered_map<SequenceId, Branch> branches_;
  StepSampling sampling_;
  std::vector<Withdrawal> withdrawals_;  // asked for while a step runs
  bool stepping_ = false;
  int64_t wake_at_ns_ = kNever;
  EndRate ends_;
};

}  // namespace quire
