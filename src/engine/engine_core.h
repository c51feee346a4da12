// The engine without threads and clocks: takes requests, plans and runs steps, samples, and tells each request what
// became of it. Everything that could make a run differ from its replay - time, executor - comes in from outside, so
// whole runs can be simulated.
//
// Thread: one at a time (the engine thread). Events go out from within these calls.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "engine/answer_text.h"
#include "engine/event.h"
#include "engine/executor.h"
#include "engine/metrics.h"
#include "engine/request.h"
#include "engine/timeline.h"
#include "sample/sampler.h"
#include "sched/scheduler.h"
#include "text/tokenizer.h"

namespace quire {

class EngineCore {
 public:
  using OnEvent = std::function<void(Event event)>;

  // `context`: tokens a sequence may reach. The referenced objects outlive the core.
  EngineCore(std::unique_ptr<Scheduler> scheduler, Executor& executor, const Tokenizer& tokenizer, int64_t context,
             EngineMetrics& metrics, Timeline& timeline);
  ~EngineCore();

  // What can be said of a request without the queue: nonsense, or too long. Any thread.
  static Status check(const Request& request, int64_t vocab_size, int64_t context);

  // Fails when the scheduler refuses; then `on_event` hears nothing. Otherwise it hears exactly one terminal event.
  Status submit(Request request, OnEvent on_event, int64_t now_ns);
  // Ends a request with `why`; unknown ids are ignored.
  void cancel(std::string_view id, const Status& why, int64_t now_ns);
  void cancel_all(const Status& why, int64_t now_ns);

  // Runs one step, if there is anything to do. `clock` is read after the forward pass and after sampling.
  // False: nothing to do before wake_at_ns() or the next call of submit().
  bool step(const std::function<int64_t()>& clock);
  int64_t wake_at_ns() const { return wake_at_ns_; }

  size_t live_requests() const { return requests_.size(); }
  const Scheduler& scheduler() const { return *scheduler_; }
  // Requests that ended per second, of late; 0 before any did.
  double requests_per_second(int64_t now_ns) const;

 private:
  struct Choice;
  struct LiveRequest;
  struct Branch {  // where a sequence's tokens go
    LiveRequest* request = nullptr;
    int32_t choice = 0;
  };
  struct LogitRow;  // a row of the plan whose logits are wanted, and what for
  struct Sampled {
    int32_t token = 0;
    bool stopped = false;
    bool ends = false;  // an end-of-generation or stop token, which is no part of the text
    std::string text;   // what the token made final
    Status status;
    std::optional<TokenLogprob> logprob;
  };

  void expire(int64_t now_ns);
  void note_plan(const StepPlan& plan, int64_t now_ns);
  void sample_plan(const StepPlan& plan, std::vector<Sampled>& sampled);
  void sample_rows(std::span<const LogitRow> rows, std::span<const float> logits, std::vector<Sampled>& sampled);
  Sampled sample_choice(const LiveRequest& request, Choice& choice, std::span<const float> logits) const;
  void deliver(const StepPlan& plan, std::vector<Sampled>& sampled, int64_t now_ns);
  void deliver_token(LiveRequest& request, int32_t index, Sampled& sampled, int64_t now_ns);
  void settle(const StepOutcome& outcome, int64_t now_ns);
  void finish_choice(LiveRequest& request, int32_t index, FinishReason reason, int64_t now_ns);
  void end(LiveRequest& request, const Status& error, int64_t now_ns);
  void update_gauges();
  RequestTimings timings(const LiveRequest& request) const;

  std::unique_ptr<Scheduler> scheduler_;
  Executor& executor_;
  const Tokenizer& tokenizer_;
  const int64_t context_;
  EngineMetrics& metrics_;
  Timeline& timeline_;
  std::map<std::string, std::unique_ptr<LiveRequest>, std::less<>> requests_;
  std::unordered_map<SequenceId, Branch> branches_;
  int64_t wake_at_ns_ = kNever;
  std::vector<int64_t> ended_ns_;  // of the last requests, a ring
  size_t ended_count_ = 0;
};

}  // namespace quire
