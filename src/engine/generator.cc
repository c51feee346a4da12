#include "engine/generator.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "base/check.h"
#include "capacity/loaded_model.h"
#include "capacity/model_setup.h"
#include "engine/engine_core.h"
#include "engine/recording.h"
#include "engine/runner.h"
#include "model/model.h"

namespace quire {
namespace {

constexpr const char* kRequestId = "local";  // there is never a second one

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

class LocalGenerator final : public Generator {
 public:
  static Result<std::unique_ptr<Generator>> open(const ModelOptions& options);

  Status check_prompt(std::span<const int32_t> ids) const override;
  Status load(const Progress& progress) override;
  std::span<const std::string> load_notes() const override { return notes_; }
  std::string recording_end() const override { return recorder_ ? recorder_->why_stopped() : std::string(); }
  Result<GenerateResult> generate(Request request, const OnText& on_text) override;
  Result<ScoreResult> score(std::span<const int32_t> ids, int top_n) override;

  const Checkpoint& checkpoint() const override { return *opened_.checkpoint; }
  const Tokenizer& tokenizer() const override { return *opened_.tokenizer; }
  const ChatTemplate* chat_template() const override { return template_.has_value() ? &*template_ : nullptr; }
  const MemoryPlan& memory_plan() const override { return plan_; }
  int64_t context() const override { return plan_.context; }
  std::string compute_summary() const override { return opened_.sizes->description(); }
  int64_t scalar_fallback_count() const override {
    return runner_ == nullptr ? 0 : runner_->model().device().scalar_fallbacks();
  }

 private:
  // Hears what a request says until its terminal event; returns false to cancel it.
  using OnEvent = std::function<bool(Event event)>;
  RequestLimits request_limits(int64_t context) const;
  // Runs a request to its end and returns the terminal event.
  Result<Event> run(Request request, const OnEvent& on_event);

  OpenedModel opened_;
  std::optional<ChatTemplate> template_;
  MemoryPlan plan_;
  std::vector<std::string> notes_;

  EngineObserver nobody_;
  std::unique_ptr<Runner> runner_;               // null until loaded, as is the core
  std::unique_ptr<RecordingExecutor> recorder_;  // null: nothing is recorded
  std::unique_ptr<EngineCore> core_;
};

Result<std::unique_ptr<Generator>> LocalGenerator::open(const ModelOptions& options) {
  auto generator = std::make_unique<LocalGenerator>();
  QUIRE_ASSIGN_OR_RETURN(generator->opened_, open_model(options));
  QUIRE_ASSIGN_OR_RETURN(generator->template_, open_chat_template(generator->checkpoint()));
  generator->plan_ = plan_sequences(generator->opened_, 1);
  return std::unique_ptr<Generator>(std::move(generator));
}

Status LocalGenerator::check_prompt(std::span<const int32_t> ids) const {
  Request asked;
  asked.prompt.assign(ids.begin(), ids.end());
  asked.max_tokens = 0;
  return request_limits(context()).check(asked);
}

RequestLimits LocalGenerator::request_limits(int64_t context) const {
  return {.vocab_size = opened_.config.vocab_size,
          .context = context,
          .trained_context = opened_.config.context_length,
          .kv_tokens = plan_.context,
          .max_choices = 1};
}

Status LocalGenerator::load(const Progress& progress) {
  if (core_ != nullptr) return {};
  if (!plan_.fits()) {
    return resource_exhausted(opened_.options.model_path + ": needs " + std::to_string(plan_.total_bytes() >> 20) +
                              " MiB for a context of " + std::to_string(plan_.context) + " tokens, " +
                              std::to_string(plan_.budget_bytes >> 20) +
                              " MiB are available; give a smaller --context or model");
  }
  ModelLimits limits;
  limits.workspace = {.max_rows = step_rows(plan_.context), .max_context = plan_.context};
  limits.kv_pages = plan_.pages;
  SchedulerConfig scheduler_config;
  scheduler_config.policy.kind = PolicyKind::kContinuous;
  scheduler_config.max_seqs = 1;
  scheduler_config.max_step_rows = limits.workspace.max_rows;
  QUIRE_ASSIGN_OR_RETURN(
      auto scheduler,
      Scheduler::create(scheduler_config, kv_cache_config(opened_.config, limits.kv_pages, plan_.context)));
  auto report = [&](double fraction) {
    if (progress) progress("loading weights", fraction);
  };
  QUIRE_ASSIGN_OR_RETURN(auto loaded, load_model(opened_, limits, report));
  notes_ = std::move(loaded.notes);
  runner_ = std::make_unique<Runner>(std::move(loaded.model), kScoreRows);
  if (!opened_.options.record.empty()) {
    const RecordedRun run = recorded_run(opened_.options, runner_->model(), limits, kScoreRows);
    QUIRE_ASSIGN_OR_RETURN(recorder_, RecordingExecutor::create(*runner_, opened_.options.record, run));
  }
  Executor& executor = recorder_ ? static_cast<Executor&>(*recorder_) : *runner_;
  // One more than the context has slots: score() asks what follows a prompt that fills it.
  core_ = std::make_unique<EngineCore>(std::move(scheduler), executor, *opened_.tokenizer,
                                       request_limits(plan_.context + 1), nobody_);
  return {};
}

Result<Event> LocalGenerator::run(Request request, const OnEvent& on_event) {
  request.id = kRequestId;
  bool wanted = true;
  Event last;
  QUIRE_RETURN_IF_ERROR(core_->submit(
      std::move(request),
      [&](Event event) {
        if (event.kind == Event::Kind::kFinished || event.kind == Event::Kind::kFailed) {
          last = std::move(event);
        } else {
          wanted = on_event(std::move(event)) && wanted;
        }
      },
      now_ns()));
  while (core_->live_requests() > 0) {
    QUIRE_CHECK(core_->step(now_ns));  // alone, a request always finds rows and pages
    if (!wanted) core_->cancel(kRequestId, cancelled("the answer is not wanted any more"), now_ns());
  }
  return last;
}

Result<GenerateResult> LocalGenerator::generate(Request request, const OnText& on_text) {
  QUIRE_RETURN_IF_ERROR(check_prompt(request.prompt));
  const int64_t room = context() - static_cast<int64_t>(request.prompt.size());
  request.max_tokens = request.max_tokens < 0 ? room : std::min(room, request.max_tokens);
  QUIRE_RETURN_IF_ERROR(request_limits(context()).check(request));  // before the weights are packed
  QUIRE_RETURN_IF_ERROR(load(nullptr));

  const int64_t scalar_before = scalar_fallback_count();
  const int64_t start_ns = now_ns();
  bool wanted = true;
  GenerateResult result;
  const auto hear = [&](Event event) {
    result.ids.insert(result.ids.end(), event.ids.begin(), event.ids.end() - (event.ends_generation ? 1 : 0));
    result.text += event.text;
    if (event.kind == Event::Kind::kChoiceFinished) result.finish_reason = event.finish_reason;
    if (!event.text.empty() && on_text && !on_text(event.text)) wanted = false;
    return wanted;
  };
  QUIRE_ASSIGN_OR_RETURN(const Event last, run(std::move(request), hear));
  if (!wanted) {
    result.finish_reason = "cancelled";
  } else if (!last.error.ok()) {
    return last.error;
  }
  result.timings = last.timings;
  if (last.timings.generated_tokens == 0)
    result.timings.ttft_ms = result.timings.prefill_ms = static_cast<double>(now_ns() - start_ns) / 1e6;
  result.timings.generated_tokens = static_cast<int64_t>(result.ids.size());
  result.scalar_linears = scalar_fallback_count() - scalar_before;
  return result;
}

Result<ScoreResult> LocalGenerator::score(std::span<const int32_t> ids, int top_n) {
  QUIRE_RETURN_IF_ERROR(check_prompt(ids));
  QUIRE_RETURN_IF_ERROR(load(nullptr));
  Request asked;
  asked.prompt.assign(ids.begin(), ids.end());
  asked.prompt_logprobs = true;
  asked.logprobs = std::max(top_n, 0);
  asked.max_tokens = 1;  // for what is likely after the last id; which token is chosen does not matter
  asked.sampling.temperature = 0;
  asked.ignore_eos = true;
  ScoreResult result;
  const auto hear = [&](Event event) {
    for (const TokenLogprob& token : event.prompt_logprobs) result.next_logprob.push_back(token.logprob);
    for (TokenLogprob& token : event.logprobs) result.top = std::move(token.top);
    return true;
  };
  QUIRE_ASSIGN_OR_RETURN(const Event last, run(std::move(asked), hear));
  QUIRE_RETURN_IF_ERROR(last.error);
  return result;
}

}  // namespace

Result<std::unique_ptr<Generator>> Generator::open(const ModelOptions& options) {
  return LocalGenerator::open(options);
}

}  // namespace quire
