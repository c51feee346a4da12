#include "engine/engine_core.h"

#include <algorithm>
#include <limits>
#include <new>

#include "base/check.h"

namespace quire {
namespace {

double ms(int64_t from_ns, int64_t to_ns) { return static_cast<double>(to_ns - from_ns) / 1e6; }

const char* failure_name(const Status& error) {
  switch (error.code()) {
    case StatusCode::kCancelled:
      return "cancelled";
    case StatusCode::kDeadlineExceeded:
      return "deadline_exceeded";
    default:
      return "error";
  }
}

Event make_event(Event::Kind kind, int32_t choice = 0) {
  Event event;
  event.kind = kind;
  event.choice = choice;
  return event;
}

// Prompt tokens that follow the row's logit rows and whose log-probabilities are wanted.
std::vector<int32_t> prompt_targets(const PlanRow& row, const Request& request) {
  std::vector<int32_t> targets;
  if (!request.prompt_logprobs) return targets;
  const int64_t end = row.first_position + row.rows;
  for (int64_t next = end - row.logit_rows + 1; next <= end; ++next) {
    if (next < static_cast<int64_t>(request.prompt.size()))
      targets.push_back(request.prompt[static_cast<size_t>(next)]);
  }
  return targets;
}

}  // namespace

struct EngineCore::Choice {
  AnswerText text;
  int64_t generated = 0;
  int64_t delivered_ns = 0;
  const char* finish_reason = nullptr;  // null: not finished
};

struct EngineCore::LiveRequest {
  Request request;
  OnEvent on_event;
  SequenceId first_id = 0;
  std::vector<Choice> choices;
  int32_t open_choices = 0;
  bool sampled = false;  // its first token was asked for
  int64_t submitted_ns = 0;
  int64_t started_ns = kNever;
  int64_t first_token_ns = kNever;
  int64_t last_token_ns = kNever;
  int64_t cached_tokens = 0;
  int64_t preemptions = 0;
  std::vector<TokenLogprob> prompt_logprobs;  // as far as the prompt is computed, then delivered
  Status failure;                             // not ok: it hears nothing more but its end

  int64_t deadline_ns() const {
    return request.deadline_ms > 0 ? submitted_ns + request.deadline_ms * 1'000'000 : kNever;
  }
  int64_t queue_deadline_ns() const {
    return request.max_queue_ms > 0 && started_ns == kNever ? submitted_ns + request.max_queue_ms * 1'000'000 : kNever;
  }
};

EngineCore::EngineCore(std::unique_ptr<Scheduler> scheduler, Executor& executor, const Tokenizer& tokenizer,
                       const RequestLimits& limits, EngineObserver& observer)
    : scheduler_(std::move(scheduler)),
      executor_(executor),
      tokenizer_(tokenizer),
      limits_(limits),
      observer_(observer) {}

EngineCore::~EngineCore() { QUIRE_CHECK(requests_.empty()); }  // each has heard its terminal event

Status EngineCore::submit(Request request, OnEvent on_event, int64_t now_ns) {
  QUIRE_RETURN_IF_ERROR(limits_.check(request));
  QUIRE_CHECK(std::ranges::is_sorted(request.stop_token_ids));
  if (requests_.find(request.id) != requests_.end())
    return invalid_argument("a request with id \"" + request.id + "\" is running");
  const auto prompt = static_cast<int64_t>(request.prompt.size());
  SequenceSpec spec;
  spec.prompt = request.prompt;
  spec.max_tokens = request.max_tokens < 0 ? limits_.answer_room(prompt) : request.max_tokens;
  spec.branches = request.choices;
  spec.priority = request.priority;
  spec.salt = request.cache_salt;
  spec.prompt_logits = request.prompt_logprobs;

  auto live = std::make_unique<LiveRequest>();
  for (int32_t j = 0; j < request.choices; ++j) live->choices.push_back({.text = AnswerText(tokenizer_, request.stop)});
  live->submitted_ns = now_ns;
  live->on_event = std::move(on_event);
  live->open_choices = request.choices;
  live->request = std::move(request);
  QUIRE_ASSIGN_OR_RETURN(live->first_id, scheduler_->submit(std::move(spec), now_ns));
  LiveRequest& added = *live;
  try {
    branches_[added.first_id] = {&added, 0};
    requests_.emplace(added.request.id, std::move(live));
    observer_.request_queued(added.request, now_ns);
  } catch (...) {  // out of memory: it has never come
    branches_.erase(added.first_id);
    scheduler_->cancel(added.first_id);
    requests_.erase(added.request.id);
    throw;
  }
  return {};
}

void EngineCore::cancel(std::string_view id, const Status& why, int64_t now_ns) {
  if (stepping_) {
    withdrawals_.push_back({std::string(id), why});
    return;
  }
  const auto found = requests_.find(id);
  if (found != requests_.end()) withdraw(*found->second, why, now_ns);
}

void EngineCore::cancel_all(const Status& why, int64_t now_ns) {
  QUIRE_CHECK(!stepping_);
  while (!requests_.empty()) withdraw(*requests_.begin()->second, why, now_ns);
}

void EngineCore::apply_withdrawals(int64_t now_ns) {
  while (!withdrawals_.empty()) {
    const std::vector<Withdrawal> asked = std::exchange(withdrawals_, {});
    for (const Withdrawal& withdrawal : asked) {
      const auto found = requests_.find(withdrawal.id);
      if (found != requests_.end()) withdraw(*found->second, withdrawal.why, now_ns);
    }
  }
}

void EngineCore::expire(int64_t now_ns) {
  std::vector<LiveRequest*> late;
  for (const auto& [id, request] : requests_) {
    if (now_ns >= std::min(request->deadline_ns(), request->queue_deadline_ns())) late.push_back(request.get());
  }
  for (LiveRequest* request : late) {
    if (now_ns >= request->deadline_ns()) {
      withdraw(*request,
               deadline_exceeded("the request's deadline of " + std::to_string(request->request.deadline_ms) +
                                 " ms has passed"),
               now_ns);
    } else {
      withdraw(*request,
               resource_exhausted("the request waited " + std::to_string(request->request.max_queue_ms) +
                                  " ms without being started; the server is busy, try later"),
               now_ns);
    }
  }
}

bool EngineCore::step(const std::function<int64_t()>& clock) {
  stepping_ = true;
  const int64_t start_ns = clock();
  expire(start_ns);
  apply_withdrawals(start_ns);
  const StepPlan& plan = scheduler_->plan(start_ns);
  note_plan(plan, start_ns);
  const bool working = !plan.empty();
  if (working) {
    observer_.step_began(static_cast<int64_t>(plan.tokens.size()), static_cast<int64_t>(plan.rows.size()), start_ns);
    const Status done = compute_step(plan, start_ns, clock);
    if (!done.ok()) {
      observer_.step_failed();
      fail_step(plan, done, clock());
    }
    apply_withdrawals(clock());
  }
  stepping_ = false;
  if (!working) {
    wake_at_ns_ = plan.wake_at_ns;
    for (const auto& [id, request] : requests_)
      wake_at_ns_ = std::min({wake_at_ns_, request->deadline_ns(), request->queue_deadline_ns()});
  }
  update_gauges();
  return working;
}

// What fails here, or finds no memory, ends the requests of the step and no others.
Status EngineCore::compute_step(const StepPlan& plan, int64_t start_ns, const std::function<int64_t()>& clock) {
  std::vector<SampleResult> results;
  Result<StepResult> step = StepResult();
  int64_t end_ns = start_ns;
  try {
    step = executor_.run(plan, sampling_of(plan));
    if (step.ok()) sampling_.ended.clear();  // it has heard of them
    end_ns = clock();
    apply_withdrawals(end_ns);
    QUIRE_RETURN_IF_ERROR(step.status());
    results = take_results(plan, *step, end_ns);
  } catch (const std::bad_alloc&) {
    return resource_exhausted("out of memory");  // short enough to need none itself
  }
  observer_.step_done(static_cast<int64_t>(plan.tokens.size()), static_cast<double>(end_ns - start_ns) / 1e9);
  apply_withdrawals(end_ns);  // of listeners; the step is still in flight
  settle(scheduler_->commit(results, end_ns - start_ns), end_ns);
  if (drafter_) set_drafts(plan);
  return {};
}

void EngineCore::note_plan(const StepPlan& plan, int64_t now_ns) {
  for (const StepPlan::Preemption& preemption : plan.preempted) {
    LiveRequest& request = *branches_.at(preemption.id).request;
    ++request.preemptions;
    observer_.request_event(request.request.id, {.time_ns = now_ns, .kind = TraceEvent::Kind::kPreempted});
  }
  for (const StepPlan::Admission& admission : plan.admitted) {
    LiveRequest& request = *branches_.at(admission.id).request;
    if (!admission.resumed) request.cached_tokens = admission.cached_tokens;
    request.started_ns = std::min(request.started_ns, now_ns);
    observer_.request_event(request.request.id, {.time_ns = now_ns,
                                                 .kind = TraceEvent::Kind::kAdmitted,
                                                 .rows = static_cast<int32_t>(admission.cached_tokens),
                                                 .differs_at = static_cast<int32_t>(admission.match.differs_at),
                                                 .detail = match_end_name(admission.match.end).data()});
  }
  for (const PlanRow& row : plan.rows) {
    if (row.padding) continue;
    const Branch& branch = branches_.at(row.id);
    observer_.request_event(branch.request->request.id, {.time_ns = now_ns,
                                                         .kind = TraceEvent::Kind::kStep,
                                                         .choice = branch.choice,
                                                         .rows = row.rows,
                                                         .step_rows = static_cast<int32_t>(plan.tokens.size()),
                                                         .step_sequences = static_cast<int32_t>(plan.rows.size())});
  }
}

const StepSampling& EngineCore::sampling_of(const StepPlan& plan) {
  sampling_.started.clear();
  sampling_.rows.clear();
  for (const PlanRow& row : plan.rows) {
    RowSampling& sampling = sampling_.rows.emplace_back();
    if (row.padding) continue;
    LiveRequest& live = *branches_.at(row.id).request;
    sampling.logprobs = live.request.logprobs;
    sampling.prompt_targets = prompt_targets(row, live.request);
    if (row.samples == 0 || live.sampled) continue;
    live.sampled = true;
    SamplingStart& start = sampling_.started.emplace_back();
    start.id = row.id;
    start.branches = row.samples;
    start.params = live.request.sampling;
    start.prompt = live.request.prompt;
    // What would end the answer cannot come yet. An ignored EOS ends nothing, so it may.
    if (start.params.min_tokens > 0) {
      std::vector<int32_t>& mask = start.params.min_tokens_mask;
      mask = live.request.stop_token_ids;
      const auto ends = tokenizer_.end_of_generation_ids();
      if (!live.request.ignore_eos) mask.insert(mask.end(), ends.begin(), ends.end());
    }
  }
  return sampling_;
}

void EngineCore::fail_step(const StepPlan& plan, const Status& why, int64_t now_ns) {
  for (const PlanRow& row : plan.rows) {
    const auto branch = branches_.find(row.id);
    if (branch != branches_.end() && branch->second.request->failure.ok()) branch->second.request->failure = why;
  }
  settle(scheduler_->fail_step(), now_ns);
}

// Tells listeners what was sampled, and leaves in `step` and the results what the scheduler is to commit.
std::vector<SampleResult> EngineCore::take_results(const StepPlan& plan, StepResult& step, int64_t now_ns) {
  std::vector<SampleResult> results;
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    const PlanRow& row = plan.rows[i];
    if (row.padding) continue;
    const Branch branch = branches_.at(row.id);
    LiveRequest& live = *branch.request;
    std::ranges::move(step.rows[i].prompt_logprobs, std::back_inserter(live.prompt_logprobs));
    for (int32_t j = 0; j < row.samples; ++j) {
      SampledSequence& sampled = step.rows[i].sequences[static_cast<size_t>(j)];
      branches_[row.id + j] = {&live, branch.choice + j};
      const bool stopped = take_tokens(live, branch.choice + j, sampled, now_ns);
      results.push_back({.id = row.id + j, .tokens = sampled.tokens, .stopped = stopped});
    }
  }
  return results;
}

bool EngineCore::take_tokens(LiveRequest& live, int32_t index, SampledSequence& sampled, int64_t now_ns) {
  if (live.failure.ok()) live.failure = sampled.status;
  if (!live.failure.ok()) {
    if (sampled.tokens.empty()) sampled.tokens.push_back(0);  // of a sequence that ends here
    return true;
  }
  Choice& choice = live.choices[static_cast<size_t>(index)];
  note_token_times(live, choice, now_ns);
  Event event = make_event(Event::Kind::kDelta, index);
  bool stopped = false;
  for (const int32_t token : sampled.tokens) {
    event.ids.push_back(token);
    ++choice.generated;
    event.ends_generation = stopped = ends_generation(live.request, token);
    if (!stopped) stopped = choice.text.push(token, event.text, choice.generated > live.request.sampling.min_tokens);
    if (stopped) break;
  }
  sampled.tokens = event.ids;  // what was sampled behind the end is none of the text
  event.logprobs = std::move(sampled.logprobs);
  event.logprobs.resize(std::min(event.logprobs.size(), event.ids.size()));
  if (index == 0) event.prompt_logprobs = std::exchange(live.prompt_logprobs, {});
  live.on_event(std::move(event));
  return stopped;
}

bool EngineCore::ends_generation(const Request& request, int32_t token) const {
  const auto ends = tokenizer_.end_of_generation_ids();
  if (!request.ignore_eos && std::binary_search(ends.begin(), ends.end(), token)) return true;
  return std::ranges::binary_search(request.stop_token_ids, token);
}

void EngineCore::note_token_times(LiveRequest& live, Choice& choice, int64_t now_ns) {
  if (live.first_token_ns == kNever) {
    live.first_token_ns = now_ns;
    observer_.first_token(static_cast<double>(now_ns - live.submitted_ns) / 1e9);
    observer_.request_event(live.request.id, {.time_ns = now_ns, .kind = TraceEvent::Kind::kFirstToken});
  }
  if (choice.delivered_ns != 0) observer_.token_gap(static_cast<double>(now_ns - choice.delivered_ns) / 1e9);
  choice.delivered_ns = now_ns;
  live.last_token_ns = now_ns;
}

void EngineCore::set_drafts(const StepPlan& plan) {
  for (const PlanRow& row : plan.rows) {
    for (int32_t j = 0; j < row.samples; ++j) {
      const auto found = branches_.find(row.id + j);
      if (found == branches_.end()) continue;
      const Branch& branch = found->second;
      const Sequence* sequence = scheduler_->find(row.id + j);
      std::vector<int32_t> draft = drafter_(branch.request->request, branch.choice, sequence->tokens);
      const auto unknown =
          std::ranges::find_if(draft, [&](int32_t token) { return token < 0 || token >= limits_.vocab_size; });
      draft.erase(unknown, draft.end());
      if (!draft.empty()) scheduler_->set_draft(row.id + j, draft);
    }
  }
}

void EngineCore::settle(const StepOutcome& outcome, int64_t now_ns) {
  std::vector<LiveRequest*> touched;
  for (const StepOutcome::Finished& finished : outcome.finished) {
    const auto found = branches_.find(finished.id);
    if (found == branches_.end()) continue;
    const Branch branch = found->second;
    branches_.erase(found);
    if (finished.reason == FinishReason::kStopped || finished.reason == FinishReason::kLength) {
      // Choices of no tokens are one sequence.
      const bool for_all = branch.request->request.max_tokens == 0;
      const int32_t end = for_all ? branch.request->request.choices : branch.choice + 1;
      for (int32_t index = branch.choice; index < end; ++index)
        finish_choice(*branch.request, index, finished.reason, now_ns);
    }
    if (std::find(touched.begin(), touched.end(), branch.request) == touched.end()) touched.push_back(branch.request);
  }
  for (LiveRequest* request : touched) {
    if (!request->failure.ok()) {
      withdraw(*request, request->failure, now_ns);
    } else if (request->open_choices == 0) {
      end(*request, now_ns);
    }
  }
}

void EngineCore::finish_choice(LiveRequest& live, int32_t index, FinishReason reason, int64_t now_ns) {
  if (!live.failure.ok()) return;
  Choice& choice = live.choices[static_cast<size_t>(index)];
  Event rest = make_event(Event::Kind::kDelta, index);
  choice.text.finish(rest.text);
  if (index == 0)
    rest.prompt_logprobs = std::exchange(live.prompt_logprobs, {});  // a request for no tokens has them here
  if (!rest.text.empty() || !rest.prompt_logprobs.empty()) live.on_event(std::move(rest));
  const bool stopped = reason == FinishReason::kStopped || choice.text.stopped();
  Event event = make_event(Event::Kind::kChoiceFinished, index);
  choice.finish_reason = stopped ? "stop" : "length";
  event.finish_reason = choice.finish_reason;
  event.stop_text = choice.text.stop_string();
  observer_.request_event(
      live.request.id,
      {.time_ns = now_ns, .kind = TraceEvent::Kind::kChoiceFinished, .choice = index, .detail = choice.finish_reason});
  --live.open_choices;
  live.on_event(std::move(event));
}

RequestTimings EngineCore::timings(const LiveRequest& live) const {
  RequestTimings t;
  t.prompt_tokens = static_cast<int64_t>(live.request.prompt.size());
  t.cached_tokens = live.cached_tokens;
  t.preemptions = live.preemptions;
  for (const Choice& choice : live.choices) t.generated_tokens += choice.generated;
  if (live.started_ns != kNever) t.queued_ms = ms(live.submitted_ns, live.started_ns);
  if (live.first_token_ns != kNever) {
    t.prefill_ms = ms(live.started_ns, live.first_token_ns);
    t.ttft_ms = ms(live.submitted_ns, live.first_token_ns);
    t.decode_ms = ms(live.first_token_ns, live.last_token_ns);
  }
  return t;
}

// Takes the request's sequences from the scheduler. Those in a step end with it, and the request with the last of them.
void EngineCore::withdraw(LiveRequest& live, const Status& why, int64_t now_ns) {
  if (live.failure.ok()) live.failure = why;
  bool in_step = false;
  for (size_t j = 0; j < live.choices.size(); ++j) {
    const SequenceId id = live.first_id + static_cast<SequenceId>(j);
    if (!branches_.contains(id)) continue;
    if (scheduler_->cancel(id) == CancelResult::kAtCommit) {
      in_step = true;
    } else {
      branches_.erase(id);
    }
  }
  if (!in_step) end(live, now_ns);
}

// The one place a request leaves by.
void EngineCore::end(LiveRequest& live, int64_t now_ns) {
  // All of them, whether they came to life or not: the executor began them together.
  for (int32_t j = 0; live.sampled && j < live.request.choices; ++j) sampling_.ended.push_back(live.first_id + j);
  const Status& error = live.failure;
  Event event = make_event(error.ok() ? Event::Kind::kFinished : Event::Kind::kFailed);
  event.timings = timings(live);
  event.error = error;
  const char* reason = error.ok() ? live.choices.front().finish_reason : failure_name(error);
  observer_.request_ended(event.timings, reason);
  observer_.request_event(live.request.id,
                          {.time_ns = now_ns,
                           .kind = error.ok() ? TraceEvent::Kind::kFinished : TraceEvent::Kind::kFailed,
                           .detail = reason});
  ends_.add(now_ns);
  const OnEvent on_event = std::move(live.on_event);
  requests_.erase(live.request.id);
  on_event(std::move(event));
}

void EngineCore::update_gauges() {
  const SchedulerGauges now = scheduler_->gauges();
  const SchedulerCounters& counters = scheduler_->counters();
  EngineGauges gauges;
  gauges.running = now.running;
  gauges.waiting = now.waiting + now.preempted;
  const KvCacheConfig& cache = scheduler_->cache().config();
  for (size_t g = 0; g < cache.groups.size(); ++g) {
    const KvUsage usage = scheduler_->kv_usage(static_cast<int64_t>(g));
    const int64_t window = cache.groups[g].window;
    gauges.kv_groups.push_back({.name = window == 0 ? "global" : "window " + std::to_string(window),
                                .slots = usage.pages * cache.page_tokens,
                                .used_slots = usage.used_slots,
                                .live_slots = usage.live_slots});
    gauges.evictions += usage.evictions;
  }
  gauges.prefix_query_tokens = counters.prefix_query_tokens;
  gauges.prefix_hit_tokens = counters.prefix_hit_tokens;
  gauges.preemptions = counters.preemptions;
  gauges.recomputed_tokens = counters.recomputed_tokens;
  gauges.wasted_rows = counters.wasted_rows;
  gauges.step_time_error = scheduler_->step_times().relative_error();
  observer_.gauges_changed(gauges);
}

}  // namespace quire
