#include "engine/engine_core.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/philox.h"
#include "sample/logprobs.h"

namespace quire {
namespace {

constexpr int32_t kMaxChoices = 128;
constexpr size_t kRateWindow = 64;  // requests whose ends the rate is measured over

double ms(int64_t from_ns, int64_t to_ns) { return static_cast<double>(to_ns - from_ns) / 1e6; }

TokenLogprob token_logprob(std::span<const float> logits, float normalizer, int32_t id, int32_t top_n) {
  const RowLogprobs row = row_logprobs(logits, normalizer, id, top_n);
  TokenLogprob result{.id = id, .logprob = row.chosen, .rank = row.rank, .top = {}};
  for (const RankedToken& token : row.top) result.top.push_back({token.id, token.logprob});
  return result;
}

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

Status check_token(int32_t id, int64_t vocab_size, const char* what) {
  if (id >= 0 && id < vocab_size) return {};
  return invalid_argument(std::string(what) + " names token " + std::to_string(id) + ", but the vocabulary has " +
                          std::to_string(vocab_size));
}

}  // namespace

struct EngineCore::Choice {
  Sampler sampler;
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
  int64_t submitted_ns = 0;
  int64_t started_ns = kNever;
  int64_t first_token_ns = kNever;
  int64_t last_token_ns = kNever;
  int64_t cached_tokens = 0;
  int64_t preemptions = 0;
  std::vector<TokenLogprob> prompt_logprobs;  // [prompt - 1], filled as the prompt is computed
  Status failure;

  int64_t deadline_ns() const {
    return request.deadline_ms > 0 ? submitted_ns + request.deadline_ms * 1'000'000 : kNever;
  }
  int64_t queue_deadline_ns() const {
    return request.max_queue_ms > 0 && started_ns == kNever ? submitted_ns + request.max_queue_ms * 1'000'000 : kNever;
  }
};

struct EngineCore::LogitRow {
  int32_t row = 0;  // of the step
  LiveRequest* request = nullptr;
  int32_t choice = 0;
  int64_t position = 0;
  int32_t samples = 0;  // 0: only the prompt's log-probability
  size_t first_sample = 0;
};

EngineCore::EngineCore(std::unique_ptr<Scheduler> scheduler, Executor& executor, const Tokenizer& tokenizer,
                       int64_t context, EngineMetrics& metrics, Timeline& timeline)
    : scheduler_(std::move(scheduler)),
      executor_(executor),
      tokenizer_(tokenizer),
      context_(context),
      metrics_(metrics),
      timeline_(timeline) {}

EngineCore::~EngineCore() { QUIRE_CHECK(requests_.empty()); }  // each has heard its terminal event

Status EngineCore::check(const Request& request, int64_t vocab_size, int64_t context) {
  const auto prompt = static_cast<int64_t>(request.prompt.size());
  if (prompt == 0) return invalid_argument("the prompt has no tokens");
  for (const int32_t id : request.prompt) QUIRE_RETURN_IF_ERROR(check_token(id, vocab_size, "the prompt"));
  if (prompt > context || (request.max_tokens > 0 && prompt + request.max_tokens > context)) {
    return out_of_range(
        "the prompt has " + std::to_string(prompt) + " tokens" +
        (request.max_tokens > 0 ? " and max_tokens is " + std::to_string(request.max_tokens) : std::string()) +
        ", but the context holds " + std::to_string(context) +
        ": shorten one, or start the server with a larger --context");
  }
  if (request.choices < 1 || request.choices > kMaxChoices) {
    return invalid_argument("n is " + std::to_string(request.choices) + "; it must be between 1 and " +
                            std::to_string(kMaxChoices));
  }
  QUIRE_RETURN_IF_ERROR(request.sampling.validate());
  for (const SamplingParams::Bias& entry : request.sampling.logit_bias)
    QUIRE_RETURN_IF_ERROR(check_token(entry.id, vocab_size, "logit_bias"));
  for (const auto& word : request.sampling.bad_words) {
    for (const int32_t id : word) QUIRE_RETURN_IF_ERROR(check_token(id, vocab_size, "bad_words"));
  }
  return StopMatcher::create(request.stop).status();
}

Status EngineCore::submit(Request request, OnEvent on_event, int64_t now_ns) {
  QUIRE_RETURN_IF_ERROR(check(request, executor_.vocab_size(), context_));
  if (requests_.find(request.id) != requests_.end())
    return invalid_argument("a request with id \"" + request.id + "\" is running");
  auto live = std::make_unique<LiveRequest>();
  live->submitted_ns = now_ns;
  live->on_event = std::move(on_event);
  if (request.sampling.min_tokens > 0) {
    const auto ends = tokenizer_.end_of_generation_ids();
    request.sampling.min_tokens_mask.assign(ends.begin(), ends.end());
    request.sampling.min_tokens_mask.insert(request.sampling.min_tokens_mask.end(), request.stop_token_ids.begin(),
                                            request.stop_token_ids.end());
    std::erase_if(request.sampling.min_tokens_mask, [&](int32_t id) { return id < 0 || id >= executor_.vocab_size(); });
  }
  const auto prompt = static_cast<int64_t>(request.prompt.size());
  SequenceSpec spec;
  spec.prompt = request.prompt;
  spec.max_tokens = request.max_tokens < 0 ? context_ - prompt : request.max_tokens;
  spec.branches = request.choices;
  spec.priority = request.priority;
  spec.salt = std::to_string(request.cache_salt);
  spec.prompt_logits = request.prompt_logprobs;
  QUIRE_ASSIGN_OR_RETURN(live->first_id, scheduler_->submit(std::move(spec), now_ns));

  for (int32_t j = 0; j < request.choices; ++j) {
    SamplingParams sampling = request.sampling;
    sampling.seed = branch_seed(sampling.seed, static_cast<uint64_t>(j));
    auto text = AnswerText::create(tokenizer_, request.stop);
    QUIRE_CHECK(text.ok());
    live->choices.push_back({.sampler = Sampler(sampling, request.prompt), .text = std::move(*text)});
  }
  live->open_choices = request.choices;
  if (request.prompt_logprobs) live->prompt_logprobs.resize(request.prompt.size() - 1);
  live->request = std::move(request);
  timeline_.begin(live->request.id, now_ns, prompt);
  branches_[live->first_id] = {live.get(), 0};
  requests_.emplace(live->request.id, std::move(live));
  return {};
}

void EngineCore::cancel(std::string_view id, const Status& why, int64_t now_ns) {
  const auto found = requests_.find(id);
  if (found != requests_.end()) end(*found->second, why, now_ns);
}

void EngineCore::cancel_all(const Status& why, int64_t now_ns) {
  while (!requests_.empty()) end(*requests_.begin()->second, why, now_ns);
}

void EngineCore::expire(int64_t now_ns) {
  std::vector<LiveRequest*> late;
  for (const auto& [id, request] : requests_) {
    if (now_ns >= std::min(request->deadline_ns(), request->queue_deadline_ns())) late.push_back(request.get());
  }
  for (LiveRequest* request : late) {
    if (now_ns >= request->deadline_ns()) {
      end(*request,
          deadline_exceeded("the request's deadline of " + std::to_string(request->request.deadline_ms) +
                            " ms has passed"),
          now_ns);
    } else {
      end(*request,
          resource_exhausted("the request waited " + std::to_string(request->request.max_queue_ms) +
                             " ms without being started; the server is busy, try later"),
          now_ns);
    }
  }
}

bool EngineCore::step(const std::function<int64_t()>& clock) {
  const int64_t start_ns = clock();
  expire(start_ns);
  const StepPlan& plan = scheduler_->plan(start_ns);
  note_plan(plan, start_ns);
  if (plan.empty()) {
    wake_at_ns_ = plan.wake_at_ns;
    for (const auto& [id, request] : requests_)
      wake_at_ns_ = std::min({wake_at_ns_, request->deadline_ns(), request->queue_deadline_ns()});
    update_gauges();
    return false;
  }
  if (const Status failed = executor_.run(plan); !failed.ok()) {
    for (const PlanRow& row : plan.rows) {
      if (const auto branch = branches_.find(row.id); branch != branches_.end())
        branch->second.request->failure = failed;
    }
    settle(scheduler_->fail_step(), clock());
    return true;
  }
  std::vector<Sampled> sampled;
  sample_plan(plan, sampled);
  const int64_t end_ns = clock();
  metrics_.step(static_cast<int64_t>(plan.tokens.size()), static_cast<double>(end_ns - start_ns) / 1e9);
  deliver(plan, sampled, end_ns);

  std::vector<SampleResult> results;
  size_t next = 0;
  for (const PlanRow& row : plan.rows) {
    for (int32_t j = 0; j < row.samples; ++j, ++next) {
      const Sampled& s = sampled[next];
      results.push_back({.id = row.id + j, .tokens = std::span(&s.token, 1), .stopped = s.stopped});
    }
  }
  settle(scheduler_->commit(results, end_ns - start_ns), end_ns);
  update_gauges();
  return true;
}

void EngineCore::note_plan(const StepPlan& plan, int64_t now_ns) {
  for (const StepPlan::Preemption& preemption : plan.preempted) {
    LiveRequest& request = *branches_.at(preemption.id).request;
    ++request.preemptions;
    timeline_.add(request.request.id, {.time_ns = now_ns, .kind = TraceEvent::Kind::kPreempted});
  }
  for (const StepPlan::Admission& admission : plan.admitted) {
    LiveRequest& request = *branches_.at(admission.id).request;
    if (!admission.resumed) request.cached_tokens = admission.cached_tokens;
    request.started_ns = std::min(request.started_ns, now_ns);
    timeline_.add(request.request.id, {.time_ns = now_ns,
                                       .kind = TraceEvent::Kind::kAdmitted,
                                       .rows = static_cast<int32_t>(admission.cached_tokens),
                                       .differs_at = static_cast<int32_t>(admission.match.differs_at),
                                       .detail = match_end_name(admission.match.end).data()});
  }
  for (const PlanRow& row : plan.rows) {
    if (row.padding) continue;
    const Branch& branch = branches_.at(row.id);
    timeline_.add(branch.request->request.id, {.time_ns = now_ns,
                                               .kind = TraceEvent::Kind::kStep,
                                               .choice = branch.choice,
                                               .rows = row.rows,
                                               .step_rows = static_cast<int32_t>(plan.tokens.size()),
                                               .step_sequences = static_cast<int32_t>(plan.rows.size())});
  }
}

void EngineCore::sample_plan(const StepPlan& plan, std::vector<Sampled>& sampled) {
  std::vector<LogitRow> rows;
  size_t samples = 0;
  int32_t first = 0;
  for (const PlanRow& row : plan.rows) {
    for (int32_t i = row.rows - row.logit_rows; i < row.rows && !row.padding; ++i) {
      const Branch& branch = branches_.at(row.id);
      const bool last = i + 1 == row.rows;
      rows.push_back({.row = first + i,
                      .request = branch.request,
                      .choice = branch.choice,
                      .position = row.first_position + i,
                      .samples = last ? row.samples : 0,
                      .first_sample = samples});
    }
    samples += static_cast<size_t>(row.samples);
    first += row.rows;
  }
  sampled.resize(samples);
  const auto block = static_cast<size_t>(executor_.max_logit_rows());
  for (size_t at = 0; at < rows.size(); at += block) {
    const auto part = std::span<const LogitRow>(rows).subspan(at, std::min(block, rows.size() - at));
    std::vector<int32_t> step_rows;
    for (const LogitRow& row : part) step_rows.push_back(row.row);
    sample_rows(part, executor_.logits(step_rows), sampled);
  }
}

// Rows are independent, so they are sampled side by side: over a large vocabulary that takes as long as a small layer.
void EngineCore::sample_rows(std::span<const LogitRow> rows, std::span<const float> logits,
                             std::vector<Sampled>& sampled) {
  const auto vocab = static_cast<size_t>(executor_.vocab_size());
  executor_.parallel(static_cast<int64_t>(rows.size()), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const LogitRow& row = rows[static_cast<size_t>(i)];
      LiveRequest& request = *row.request;
      const auto row_logits = logits.subspan(static_cast<size_t>(i) * vocab, vocab);
      const auto target = static_cast<size_t>(row.position) + 1;
      if (request.request.prompt_logprobs && target < request.request.prompt.size()) {
        request.prompt_logprobs[target - 1] =
            token_logprob(row_logits, executor_.log_sum_exp(row_logits), request.request.prompt[target],
                          std::max(request.request.logprobs, 0));
      }
      for (int32_t j = 0; j < row.samples; ++j) {
        sampled[row.first_sample + static_cast<size_t>(j)] =
            sample_choice(request, request.choices[static_cast<size_t>(row.choice + j)], row_logits);
      }
    }
  });
}

EngineCore::Sampled EngineCore::sample_choice(const LiveRequest& live, Choice& choice,
                                              std::span<const float> logits) const {
  const Request& request = live.request;
  Sampled sampled;
  const Result<int32_t> token = choice.sampler.sample(logits, static_cast<uint64_t>(choice.generated));
  if (!token.ok()) {
    sampled.status = token.status();
    sampled.stopped = true;
    return sampled;
  }
  sampled.token = *token;
  if (request.logprobs >= 0)
    sampled.logprob = token_logprob(logits, executor_.log_sum_exp(logits), *token, request.logprobs);
  const auto ends = tokenizer_.end_of_generation_ids();
  sampled.ends =
      (!request.ignore_eos && std::binary_search(ends.begin(), ends.end(), *token)) ||
      std::find(request.stop_token_ids.begin(), request.stop_token_ids.end(), *token) != request.stop_token_ids.end();
  sampled.stopped = sampled.ends;
  choice.sampler.accept(*token);
  ++choice.generated;
  if (!sampled.ends)
    sampled.stopped = choice.text.push(*token, sampled.text, choice.generated > request.sampling.min_tokens);
  return sampled;
}

void EngineCore::deliver(const StepPlan& plan, std::vector<Sampled>& sampled, int64_t now_ns) {
  size_t next = 0;
  for (const PlanRow& row : plan.rows) {
    if (row.samples == 0) continue;
    if (row.padding) {
      next += static_cast<size_t>(row.samples);
      continue;
    }
    const Branch branch = branches_.at(row.id);
    for (int32_t j = 0; j < row.samples; ++j, ++next) {
      branches_[row.id + j] = {branch.request, branch.choice + j};
      deliver_token(*branch.request, branch.choice + j, sampled[next], now_ns);
    }
  }
}

void EngineCore::deliver_token(LiveRequest& live, int32_t index, Sampled& sampled, int64_t now_ns) {
  if (!sampled.status.ok()) {
    live.failure = sampled.status;
    return;
  }
  Choice& choice = live.choices[static_cast<size_t>(index)];
  if (live.first_token_ns == kNever) {
    live.first_token_ns = now_ns;
    metrics_.first_token(static_cast<double>(now_ns - live.submitted_ns) / 1e9);
    timeline_.add(live.request.id, {.time_ns = now_ns, .kind = TraceEvent::Kind::kFirstToken});
  }
  if (choice.delivered_ns != 0) metrics_.token_gap(static_cast<double>(now_ns - choice.delivered_ns) / 1e9);
  choice.delivered_ns = now_ns;
  live.last_token_ns = now_ns;
  Event event = make_event(Event::Kind::kDelta, index);
  event.text = std::move(sampled.text);
  event.ends_generation = sampled.ends;
  event.ids.push_back(sampled.token);
  if (sampled.logprob.has_value()) event.logprobs.push_back(std::move(*sampled.logprob));
  if (index == 0) event.prompt_logprobs = std::exchange(live.prompt_logprobs, {});
  live.on_event(std::move(event));
}

void EngineCore::settle(const StepOutcome& outcome, int64_t now_ns) {
  std::vector<LiveRequest*> touched;
  for (const StepOutcome::Finished& finished : outcome.finished) {
    const auto found = branches_.find(finished.id);
    if (found == branches_.end()) continue;
    const Branch branch = found->second;
    branches_.erase(found);
    if (finished.reason == FinishReason::kStopped || finished.reason == FinishReason::kLength) {
      finish_choice(*branch.request, branch.choice, finished.reason, now_ns);
    }
    if (std::find(touched.begin(), touched.end(), branch.request) == touched.end()) touched.push_back(branch.request);
  }
  for (LiveRequest* request : touched) {
    if (!request->failure.ok() || request->open_choices == 0) end(*request, request->failure, now_ns);
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
  timeline_.add(
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

// The one place a request leaves by.
void EngineCore::end(LiveRequest& live, const Status& error, int64_t now_ns) {
  for (size_t j = 0; j < live.choices.size(); ++j) {
    const SequenceId id = live.first_id + static_cast<SequenceId>(j);
    const auto found = branches_.find(id);
    if (found == branches_.end() || found->second.request != &live) continue;
    // No step is in flight here, so cancelling takes effect at once and the outcome of no step mentions it.
    QUIRE_CHECK(scheduler_->cancel(id) == CancelResult::kDone);
    branches_.erase(found);
  }
  Event event = make_event(error.ok() ? Event::Kind::kFinished : Event::Kind::kFailed);
  event.timings = timings(live);
  event.error = error;
  const char* reason = error.ok() ? live.choices.front().finish_reason : failure_name(error);
  metrics_.request_ended(event.timings, reason);
  timeline_.add(live.request.id, {.time_ns = now_ns,
                                  .kind = error.ok() ? TraceEvent::Kind::kFinished : TraceEvent::Kind::kFailed,
                                  .detail = reason});
  if (ended_ns_.size() < kRateWindow) {
    ended_ns_.push_back(now_ns);
  } else {
    ended_ns_[ended_count_ % kRateWindow] = now_ns;
  }
  ++ended_count_;
  const OnEvent on_event = std::move(live.on_event);
  requests_.erase(live.request.id);
  on_event(std::move(event));
}

double EngineCore::requests_per_second(int64_t now_ns) const {
  if (ended_ns_.size() < 2) return 0;
  const int64_t oldest = *std::min_element(ended_ns_.begin(), ended_ns_.end());
  return static_cast<double>(ended_ns_.size()) / std::max(1e-9, static_cast<double>(now_ns - oldest) / 1e9);
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
  metrics_.set(gauges);
}

}  // namespace quire
