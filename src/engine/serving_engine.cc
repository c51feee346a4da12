// The Engine that serves: one thread that owns scheduler and model, fed through an inbox.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <mutex>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "base/check.h"
#include "capacity/loaded_model.h"
#include "capacity/memory_plan.h"
#include "capacity/model_setup.h"
#include "engine/engine.h"
#include "engine/engine_core.h"
#include "engine/inbox.h"
#include "engine/recording.h"
#include "engine/runner.h"

namespace quire {
namespace {

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

HashKey random_hash_key() {
  std::random_device random;
  const auto word = [&] { return static_cast<uint64_t>(random()) << 32 | random(); };
  return HashKey{word(), word()};
}

class ServingEngine final : public Engine {
 public:
  static Result<std::unique_ptr<Engine>> make(const EngineOptions& options);
  ~ServingEngine() override;

  Status submit(Request request, OnEvent on_event) override;
  void cancel(std::string_view request_id) override;

  State state() const override { return state_.load(); }
  bool loading() const override { return loading_.load(); }
  Status load_error() const override;
  std::vector<std::string> load_notes() const override;
  void drain() override;
  bool drained() const override { return state_.load() == State::kDraining && live_.load() == 0; }
  StepInProgress step_in_progress() const override { return observer_.step_in_progress(now_ns()); }
  int64_t retry_after_s() const override;

  const Checkpoint& checkpoint() const override { return *opened_.checkpoint; }
  const Tokenizer& tokenizer() const override { return *opened_.tokenizer; }
  const ChatTemplate* chat_template() const override { return template_.has_value() ? &*template_ : nullptr; }
  const RequestLimits& limits() const override { return limits_; }
  const MemoryPlan& plan() const override { return plan_; }
  std::string describe_json() const override;
  Result<std::string> trace_json(std::string_view request_id, uint64_t cache_salt) const override {
    return observer_.timeline().json(request_id, cache_salt);
  }
  std::string metrics_text() const override { return observer_.metrics().text(); }

 private:
  ServingEngine(const EngineOptions& options, std::string name)
      : options_(options),
        model_name_(std::move(name)),
        observer_(model_name_, static_cast<size_t>(options.trace_requests)),
        inbox_(options.scheduler.queue) {}

  void run();
  Status load();
  void serve(EngineCore& core);
  void apply(EngineCore& core, Inbox::Mail& mail);
  static Status submit_to(EngineCore& core, Submission& submission, OnEvent on_event);
  void publish(const EngineCore& core);

  const EngineOptions options_;
  const std::string model_name_;
  OpenedModel opened_;
  std::optional<ChatTemplate> template_;
  MemoryPlan plan_;
  RequestLimits limits_;
  ServingObserver observer_;

  std::unique_ptr<Runner> runner_;               // engine thread
  std::unique_ptr<RecordingExecutor> recorder_;  // the same; null: nothing is recorded
  std::unique_ptr<Scheduler> scheduler_;         // until the core takes it

  Inbox inbox_;
  bool recording_noted_ = false;  // engine thread
  mutable std::mutex mutex_;      // load_error_, load_notes_
  Status load_error_;
  std::vector<std::string> load_notes_;

  std::atomic<State> state_{State::kLoading};
  std::atomic<bool> loading_{true};
  std::atomic<int64_t> live_{0};  // submitted, terminal event not yet delivered
  std::atomic<int64_t> running_{0};
  std::atomic<double> requests_per_second_{0};
  std::atomic<int> active_threads_{0};
  std::atomic<int64_t> loaded_bytes_{0};  // anonymous memory when loading had ended; KV pages are taken as they fill
  std::thread thread_;
};

Result<std::unique_ptr<Engine>> ServingEngine::make(const EngineOptions& options) {
  const std::string name =
      options.served_model_name.empty() ? model_name_of(options.model.model_path) : options.served_model_name;
  std::unique_ptr<ServingEngine> engine(new ServingEngine(options, name));
  QUIRE_ASSIGN_OR_RETURN(engine->opened_, open_model(options.model));
  QUIRE_ASSIGN_OR_RETURN(engine->template_, open_chat_template(engine->checkpoint(), options.chat_template));
  const ModelConfig& config = engine->opened_.config;
  QUIRE_ASSIGN_OR_RETURN(engine->plan_,
                         plan_pool(engine->opened_, {.max_step_rows = options.scheduler.max_step_rows,
                                                     .max_seqs = options.scheduler.max_seqs,
                                                     .kv_memory_bytes = options.kv_memory_bytes,
                                                     .memory_budget_bytes = options.memory_budget_bytes}));

  KvCacheConfig cache = kv_cache_config(config, engine->plan_.pages, engine->plan_.context);
  cache.layout = options.kv_layout;
  cache.prefix_caching = options.prefix_caching && options.kv_layout == KvLayout::kPaged;
  cache.hash_key = random_hash_key();
  QUIRE_ASSIGN_OR_RETURN(engine->scheduler_, Scheduler::create(options.scheduler, std::move(cache)));
  engine->limits_ =
      RequestLimits::of(*engine->scheduler_, config.vocab_size, engine->plan_.context, config.context_length);
  engine->thread_ = std::thread([raw = engine.get()] { raw->run(); });
  return std::unique_ptr<Engine>(std::move(engine));
}

ServingEngine::~ServingEngine() {
  inbox_.stop();
  if (thread_.joinable()) thread_.join();
}

std::vector<std::string> ServingEngine::load_notes() const {
  const std::lock_guard lock(mutex_);
  return load_notes_;
}

Status ServingEngine::load_error() const {
  const std::lock_guard lock(mutex_);
  return load_error_;
}

void ServingEngine::drain() { state_.store(State::kDraining); }

int64_t ServingEngine::retry_after_s() const {
  const double rate = requests_per_second_.load();
  if (rate <= 0) return 1;
  return std::clamp<int64_t>(static_cast<int64_t>(std::ceil(static_cast<double>(inbox_.waiting().requests + 1) / rate)),
                             1, 600);
}

Status ServingEngine::submit(Request request, OnEvent on_event) {
  const State state = state_.load();
  if (state == State::kLoading) return resource_exhausted("the model is still loading; try again in a moment");
  if (state == State::kDraining) return resource_exhausted("the server is shutting down");
  if (state == State::kFailed) return resource_exhausted("the model could not be loaded: " + load_error().message());
  QUIRE_RETURN_IF_ERROR(limits_.check(request));
  live_.fetch_add(1);  // first: the engine's thread may be done with it before this one goes on
  const Status taken = inbox_.submit({std::move(request), std::move(on_event), now_ns()});
  if (taken.ok()) return {};
  live_.fetch_sub(1);
  observer_.metrics().request_refused("queue_full");
  return resource_exhausted(taken.message() + ": try again in " + std::to_string(retry_after_s()) + " s");
}

void ServingEngine::cancel(std::string_view request_id) { inbox_.cancel(request_id); }

void ServingEngine::run() {
  Status loaded;
  try {
    loaded = load();
  } catch (const std::bad_alloc&) {
    loaded = resource_exhausted("there was not enough memory to load the model");
  }
  loading_.store(false);
  if (!loaded.ok()) {
    const std::lock_guard lock(mutex_);
    load_error_ = std::move(loaded);
    state_.store(State::kFailed);
    return;
  }
  Executor& executor = recorder_ ? static_cast<Executor&>(*recorder_) : *runner_;
  EngineCore core(std::move(scheduler_), executor, *opened_.tokenizer, limits_, observer_);
  State loading = State::kLoading;
  state_.compare_exchange_strong(loading, State::kReady);  // unless it already drains
  serve(core);
}

Status ServingEngine::load() {
  ModelLimits limits;
  limits.workspace = {.max_rows = options_.scheduler.max_step_rows, .max_context = plan_.context};
  limits.kv_pages = plan_.pages;
  limits.touch_kv = false;
  QUIRE_ASSIGN_OR_RETURN(auto loaded, load_model(opened_, limits, nullptr));
  {
    const std::lock_guard lock(mutex_);
    load_notes_ = std::move(loaded.notes);
  }
  scheduler_->set_fingerprint(kv_fingerprint(options_.model, *loaded.model));
  const int64_t logit_rows = std::max(options_.scheduler.max_seqs, kScoreRows);
  runner_ = std::make_unique<Runner>(std::move(loaded.model), logit_rows);
  if (!options_.model.record.empty()) {
    const RecordedRun run = recorded_run(options_.model, runner_->model(), limits, logit_rows);
    QUIRE_ASSIGN_OR_RETURN(recorder_, RecordingExecutor::create(*runner_, options_.model.record, run));
  }
  loaded_bytes_.store(anonymous_memory_bytes());
  return {};
}

void ServingEngine::serve(EngineCore& core) {
  for (;;) {
    Inbox::Mail mail = inbox_.take();
    apply(core, mail);
    if (mail.stop) core.cancel_all(cancelled("the server is shutting down"), now_ns());
    publish(core);
    if (mail.stop) return;
    const bool worked = core.step(now_ns);
    publish(core);
    if (!worked) inbox_.wait(core.wake_at_ns());
  }
}

Status ServingEngine::submit_to(EngineCore& core, Submission& submission, OnEvent on_event) {
  try {
    return core.submit(std::move(submission.request), std::move(on_event), submission.submitted_ns);
  } catch (const std::bad_alloc&) {
    return resource_exhausted("there was no memory left for the request; try again later");
  }
}

void ServingEngine::apply(EngineCore& core, Inbox::Mail& mail) {
  for (Submission& submission : mail.submissions) {
    OnEvent count_down = [this, on_event = std::move(submission.on_event)](Event event) {
      const bool terminal = event.kind == Event::Kind::kFinished || event.kind == Event::Kind::kFailed;
      on_event(std::move(event));
      if (terminal) live_.fetch_sub(1);
    };
    const Status accepted = submit_to(core, submission, count_down);
    if (accepted.ok()) continue;
    observer_.metrics().request_refused("scheduler");
    Event failed;
    failed.kind = Event::Kind::kFailed;
    failed.error = accepted;
    count_down(std::move(failed));
  }
  for (const std::string& id : mail.cancellations) core.cancel(id, cancelled("cancelled by the client"), now_ns());
}

void ServingEngine::publish(const EngineCore& core) {
  const SchedulerGauges gauges = core.scheduler().gauges();
  inbox_.published(gauges.queue());
  if (recorder_ && !recorder_->why_stopped().empty() && !recording_noted_) {
    const std::lock_guard lock(mutex_);
    load_notes_.push_back("--record " + recorder_->why_stopped());
    recording_noted_ = true;
  }
  running_.store(gauges.running);
  requests_per_second_.store(core.requests_per_second(now_ns()));
  const ThreadUse threads = runner_->model().device().threads();
  active_threads_.store(threads.active);
  observer_.metrics().threads(threads.active, threads.retreats);
}

std::string ServingEngine::describe_json() const {
  static constexpr const char* kStates[] = {"loading", "ready", "failed", "draining"};
  const SchedulerConfig& s = options_.scheduler;
  nlohmann::ordered_json json;
  json["model"] = {{"name", model_name_},
                   {"architecture", opened_.checkpoint->hparams().architecture},
                   {"format", opened_.checkpoint->format()},
                   {"context", plan_.context},
                   {"chat_template", template_.has_value()}};
  json["state"] = kStates[static_cast<int>(state_.load())];
  json["compute"] = opened_.sizes->description();
  json["notes"] = load_notes();
  json["batching"] = {{"policy", policy_name(s.policy.kind)},
                      {"max_seqs", s.max_seqs},
                      {"max_step_rows", s.max_step_rows},
                      {"max_queued", s.queue.max_requests},
                      {"max_queued_tokens", s.queue.max_tokens}};
  nlohmann::ordered_json groups = nlohmann::ordered_json::array();
  for (size_t g = 0; g < plan_.pages.size(); ++g) {
    groups.push_back({{"name", opened_.config.kv_groups[g].name},
                      {"layers", opened_.config.kv_groups[g].layers},
                      {"pages", plan_.pages[g]},
                      {"tokens", plan_.pages[g] * kPageTokens}});
  }
  json["kv_cache"] = {{"layout", options_.kv_layout == KvLayout::kPaged ? "paged" : "contiguous"},
                      {"page_tokens", kPageTokens},
                      {"groups", groups}};
  json["memory_bytes"] = {{"weights", plan_.weight_bytes},      {"kv_cache", plan_.kv_bytes},
                          {"workspace", plan_.workspace_bytes}, {"tokenizer", plan_.tokenizer_bytes},
                          {"total", plan_.total_bytes()},       {"requests", plan_.request_bytes},
                          {"budget", plan_.budget_bytes},       {"held_after_loading", loaded_bytes_.load()}};
  const auto feature = [](bool on, const char* why) { return nlohmann::ordered_json{{"on", on}, {"why", why}}; };
  const bool caching = options_.prefix_caching && options_.kv_layout == KvLayout::kPaged;
  json["features"] = {
      {"prefix_caching",
       feature(caching,
               caching ? "default" : (options_.prefix_caching ? "contiguous KV shares nothing" : "switched off"))},
      {"chunked_prefill", feature(s.policy.kind == PolicyKind::kMixed,
                                  s.policy.kind == PolicyKind::kMixed
                                      ? "policy mixed"
                                      : "only policy mixed cuts prompts into chunks that ride with decodes")},
      {"adaptive_threads",
       feature(options_.model.adapt_threads, options_.model.adapt_threads
                                                 ? "fewer threads compute while other programs take cores"
                                                 : "switched off")},
      {"speculative_decoding", feature(false, "not built yet")},
      {"structured_output", feature(false, "not built yet")},
      {"tool_calls", feature(false, "not built yet")},
  };
  json["now"] = {{"requests", live_.load()},
                 {"running", running_.load()},
                 {"waiting", inbox_.waiting().requests},
                 {"requests_per_second", requests_per_second_.load()},
                 {"threads", active_threads_.load()}};
  return json.dump(2);
}

}  // namespace

Result<std::unique_ptr<Engine>> make_engine(const EngineOptions& options) { return ServingEngine::make(options); }

}  // namespace quire
