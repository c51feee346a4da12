#include "support/test_engine.h"

#include <utility>

#include "capacity/loaded_model.h"
#include "capacity/model_setup.h"
#include "model/registry.h"
#include "vocab/tokenizer_source.h"

namespace quire {

Result<std::unique_ptr<TestEngine>> TestEngine::create(const TestEngineOptions& options) {
  auto engine = std::make_unique<TestEngine>();
  QUIRE_ASSIGN_OR_RETURN(engine->checkpoint_, Checkpoint::open(options.path));
  QUIRE_ASSIGN_OR_RETURN(engine->tokenizer_, load_tokenizer(*engine->checkpoint_));
  QUIRE_ASSIGN_OR_RETURN(const ModelConfig config, configure_model(engine->checkpoint_->hparams()));
  QUIRE_ASSIGN_OR_RETURN(auto device, make_cpu_device(options.device));
  ModelLimits limits;
  limits.workspace = {.max_rows = options.scheduler.max_step_rows, .max_context = options.context};
  limits.kv_pages.assign(config.kv_groups.size(), options.kv_tokens / kPageTokens);
  KvCacheConfig cache = kv_cache_config(config, limits.kv_pages, options.context);
  cache.layout = options.layout;
  cache.prefix_caching = options.prefix_caching;
  cache.hash_key = HashKey{1, 2};
  cache.fingerprint = "test";
  QUIRE_ASSIGN_OR_RETURN(auto model, Model::load(*engine->checkpoint_, config, std::move(device), limits, nullptr));
  if (options.device.kv == KvType::kI8) {
    QUIRE_RETURN_IF_ERROR(set_k_factors(*model, *engine->checkpoint_, *engine->tokenizer_).status());
  }
  engine->runner_ = std::make_unique<Runner>(std::move(model), kScoreRows);
  QUIRE_ASSIGN_OR_RETURN(auto scheduler, Scheduler::create(options.scheduler, std::move(cache)));
  const RequestLimits request_limits = RequestLimits::of(*scheduler, config.vocab_size, options.context, 0);
  Executor& executor = options.wrap ? options.wrap(*engine->runner_) : *engine->runner_;
  engine->core_ = std::make_unique<EngineCore>(std::move(scheduler), executor, *engine->tokenizer_, request_limits,
                                               engine->observer_);
  return engine;
}

TestEngine::~TestEngine() {
  if (core_ != nullptr) core_->cancel_all(cancelled("the test ends"), now_ns);
}

Status TestEngine::submit(const Request& request) {
  Heard& heard = heard_[request.id];
  heard.choices.resize(static_cast<size_t>(request.choices));
  return core_->submit(
      request,
      [this, id = request.id](Event event) {
        Heard& h = heard_[id];
        Heard::Choice& choice = h.choices.at(static_cast<size_t>(event.choice));
        const auto keep = [](std::vector<float>& to, const TokenLogprob& entry) {
          to.push_back(entry.logprob);
          for (const auto& candidate : entry.top) to.push_back(candidate.logprob);
        };
        choice.text += event.text;
        choice.ids.insert(choice.ids.end(), event.ids.begin(), event.ids.end());
        for (const TokenLogprob& entry : event.logprobs) keep(choice.logprobs, entry);
        for (const TokenLogprob& entry : event.prompt_logprobs) keep(h.prompt_logprobs, entry);
        if (event.kind == Event::Kind::kChoiceFinished) choice.finish_reason = event.finish_reason;
        if (event.kind == Event::Kind::kFinished || event.kind == Event::Kind::kFailed) {
          ++h.terminal_events;
          h.error = event.error;
          h.timings = event.timings;
        }
      },
      now_ns);
}

void TestEngine::run() {
  const auto clock = [this] { return now_ns += 1000; };
  while (core_->live_requests() > 0) {
    if (!core_->step(clock))
      now_ns = std::max(now_ns, core_->wake_at_ns() == kNever ? now_ns + 1'000'000 : core_->wake_at_ns());
  }
}

}  // namespace quire
