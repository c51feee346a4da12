#include "engine/generator.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>

#include "engine/answer_text.h"
#include "engine/model_setup.h"
#include "engine/sequence_kv.h"
#include "engine/tokenizer_source.h"
#include "model/model.h"
#include "model/registry.h"
#include "sample/sampler.h"

namespace quire {
namespace {

using Clock = std::chrono::steady_clock;

double ms_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

class LocalGenerator final : public Generator {
 public:
  static Result<std::unique_ptr<Generator>> open(const ModelOptions& options);

  Status check_prompt(std::span<const int32_t> ids) const override;
  Status load(const Progress& progress) override;
  Result<GenerateResult> generate(const GenerateRequest& request, const OnText& on_text) override;
  Result<ScoreResult> score(std::span<const int32_t> ids, int top_n) override;

  const Checkpoint& checkpoint() const override { return *checkpoint_; }
  const Tokenizer& tokenizer() const override { return *tokenizer_; }
  const ChatTemplate* chat_template() const override { return template_.has_value() ? &*template_ : nullptr; }
  const MemoryPlan& memory_plan() const override { return plan_; }
  int64_t context() const override { return plan_.context; }
  std::string compute_summary() const override { return device_description_; }
  int64_t scalar_fallback_count() const override { return model_ == nullptr ? 0 : model_->device().scalar_fallbacks(); }

 private:
  // Stores the K and V of ids from position first on; the logits of the last end up in logits_.
  void prefill(std::span<const int32_t> ids, int64_t first);
  void step(std::span<const int32_t> ids, int64_t first, bool want_logits);

  ModelOptions options_;
  ModelConfig config_;
  std::unique_ptr<Checkpoint> checkpoint_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::optional<ChatTemplate> template_;
  MemoryPlan plan_;
  std::string device_description_;
  std::unique_ptr<Model> model_;
  std::optional<SequenceKv> kv_;
  std::vector<float> logits_;  // [vocab], of the last row computed
};

Result<std::unique_ptr<Generator>> LocalGenerator::open(const ModelOptions& options) {
  auto generator = std::make_unique<LocalGenerator>();
  generator->options_ = options;
  QUIRE_ASSIGN_OR_RETURN(generator->checkpoint_, Checkpoint::open(options.model_path));
  const Checkpoint& checkpoint = *generator->checkpoint_;
  QUIRE_ASSIGN_OR_RETURN(generator->config_, configure_model(checkpoint.hparams()));
  QUIRE_ASSIGN_OR_RETURN(generator->tokenizer_, load_tokenizer(checkpoint));
  QUIRE_ASSIGN_OR_RETURN(const std::optional<std::string> source, chat_template_source(checkpoint));
  if (source.has_value()) {
    QUIRE_ASSIGN_OR_RETURN(ChatTemplate parsed, ChatTemplate::parse(*source));
    generator->template_.emplace(std::move(parsed));
  }
  QUIRE_ASSIGN_OR_RETURN(generator->plan_, plan_memory(checkpoint, options, 1));
  QUIRE_ASSIGN_OR_RETURN(const auto device, make_device(options));
  generator->device_description_ = device->description();
  return std::unique_ptr<Generator>(std::move(generator));
}

Status LocalGenerator::check_prompt(std::span<const int32_t> ids) const {
  if (ids.empty()) return invalid_argument("the prompt has no tokens");
  for (const int32_t id : ids) {
    if (id < 0 || id >= config_.vocab_size) {
      return invalid_argument("token id " + std::to_string(id) + " is not in the vocabulary of " +
                              std::to_string(config_.vocab_size) + " tokens");
    }
  }
  if (static_cast<int64_t>(ids.size()) > context()) {
    return out_of_range("the prompt has " + std::to_string(ids.size()) + " tokens, the context " +
                        std::to_string(context()) + ": shorten it or raise --context (this model: at most " +
                        std::to_string(config_.context_length) + ")");
  }
  return {};
}

Status LocalGenerator::load(const Progress& progress) {
  if (model_ != nullptr) return {};
  if (plan_.total_bytes > plan_.available_bytes) {
    return resource_exhausted(options_.model_path + ": needs " + std::to_string(plan_.total_bytes >> 20) +
                              " MiB for a context of " + std::to_string(plan_.context) + " tokens, " +
                              std::to_string(plan_.available_bytes >> 20) +
                              " MiB are available; give a smaller --context or model");
  }
  QUIRE_ASSIGN_OR_RETURN(auto device, make_device(options_));
  kv_.emplace(config_, plan_.context);
  ModelLimits limits;
  limits.workspace = {.max_rows = step_rows(plan_.context), .max_context = plan_.context};
  limits.kv_pages = kv_->pages();
  auto report = [&](double fraction) {
    if (progress) progress("loading weights", fraction);
  };
  QUIRE_ASSIGN_OR_RETURN(model_, Model::load(*checkpoint_, config_, std::move(device), limits, report));
  logits_.resize(static_cast<size_t>(config_.vocab_size));
  return {};
}

void LocalGenerator::step(std::span<const int32_t> ids, int64_t first, bool want_logits) {
  StepInput input;
  input.sequences.push_back(
      {.rows = static_cast<int64_t>(ids.size()), .first_position = first, .page_tables = kv_->page_tables()});
  input.tokens.assign(ids.begin(), ids.end());
  if (want_logits) {
    input.logit_rows = {static_cast<int32_t>(ids.size()) - 1};
    input.logits = logits_.data();
  }
  model_->forward(input);
  kv_->append(ids);
}

void LocalGenerator::prefill(std::span<const int32_t> ids, int64_t first) {
  const auto chunk = static_cast<size_t>(step_rows(context()));
  for (size_t at = 0; at < ids.size(); at += chunk) {
    const size_t rows = std::min(chunk, ids.size() - at);
    step(ids.subspan(at, rows), first + static_cast<int64_t>(at), at + rows == ids.size());
  }
}

Result<GenerateResult> LocalGenerator::generate(const GenerateRequest& request, const OnText& on_text) {
  const auto start = Clock::now();
  QUIRE_RETURN_IF_ERROR(request.sampling.validate());
  QUIRE_RETURN_IF_ERROR(check_prompt(request.prompt));
  QUIRE_RETURN_IF_ERROR(load(nullptr));
  QUIRE_ASSIGN_OR_RETURN(AnswerText answer, AnswerText::create(*tokenizer_, request.stop));
  const auto prompt_tokens = static_cast<int64_t>(request.prompt.size());
  int64_t budget = context() - prompt_tokens;
  if (request.max_tokens >= 0) budget = std::min(budget, request.max_tokens);

  const int64_t scalar_before = scalar_fallback_count();
  GenerateResult result;
  result.finish_reason = "length";
  result.timings.prompt_tokens = prompt_tokens;
  // The last prompt token is always computed: its logits are what generation starts from.
  result.timings.cached_tokens = kv_->keep_prefix(request.prompt, prompt_tokens - 1);
  prefill(std::span(request.prompt).subspan(static_cast<size_t>(result.timings.cached_tokens)),
          result.timings.cached_tokens);
  const auto prefilled = Clock::now();
  result.timings.prefill_ms = ms_between(start, prefilled);

  const auto end_ids = tokenizer_->end_of_generation_ids();
  auto ends = [&](int32_t id) {
    if (std::find(request.stop_token_ids.begin(), request.stop_token_ids.end(), id) != request.stop_token_ids.end())
      return true;
    return !request.ignore_eos && std::binary_search(end_ids.begin(), end_ids.end(), id);
  };
  Sampler sampler(request.sampling, request.prompt);
  bool cancelled = false;
  auto release = [&](const std::string& text) {
    result.text += text;
    if (!text.empty() && on_text && !on_text(text)) cancelled = true;
  };
  auto first_token = prefilled;
  for (int64_t i = 0; i < budget; ++i) {
    QUIRE_ASSIGN_OR_RETURN(const int32_t id, sampler.sample(logits_, static_cast<uint64_t>(i)));
    if (i == 0) first_token = Clock::now();
    if (ends(id)) {
      result.finish_reason = "stop";
      break;
    }
    result.ids.push_back(id);
    sampler.accept(id);
    std::string text;
    const bool stopped = answer.push(id, text);
    release(text);
    if (stopped || cancelled) break;
    if (i + 1 < budget) step(std::span(&id, 1), prompt_tokens + i, true);
  }
  std::string rest;
  answer.finish(rest);
  release(rest);
  if (answer.stopped()) result.finish_reason = "stop";
  if (cancelled) result.finish_reason = "cancelled";
  result.timings.scalar_linears = scalar_fallback_count() - scalar_before;
  result.timings.generated_tokens = static_cast<int64_t>(result.ids.size());
  result.timings.ttft_ms = ms_between(start, first_token);
  result.timings.decode_ms = ms_between(first_token, Clock::now());
  return result;
}

Result<ScoreResult> LocalGenerator::score(std::span<const int32_t> ids, int top_n) {
  QUIRE_RETURN_IF_ERROR(check_prompt(ids));
  QUIRE_RETURN_IF_ERROR(load(nullptr));
  kv_->clear();
  ScoreResult result;
  result.next_logprob.resize(ids.size() - 1);
  const auto chunk = static_cast<size_t>(step_rows(context()));
  for (size_t first = 0; first < result.next_logprob.size(); first += chunk) {
    const size_t rows = std::min(chunk, result.next_logprob.size() - first);
    StepInput input;
    input.sequences.push_back({.rows = static_cast<int64_t>(rows),
                               .first_position = static_cast<int64_t>(first),
                               .page_tables = kv_->page_tables()});
    input.tokens.assign(ids.begin() + static_cast<int64_t>(first), ids.begin() + static_cast<int64_t>(first + rows));
    input.targets.assign(ids.begin() + static_cast<int64_t>(first) + 1,
                         ids.begin() + static_cast<int64_t>(first + rows) + 1);
    input.logit_rows.resize(rows);
    std::iota(input.logit_rows.begin(), input.logit_rows.end(), 0);
    input.logprobs = result.next_logprob.data() + first;
    model_->forward(input);
    kv_->append(ids.subspan(first, rows));
  }
  step(ids.last(1), static_cast<int64_t>(ids.size()) - 1, true);

  std::vector<int32_t> order(logits_.size());
  std::iota(order.begin(), order.end(), 0);
  const auto count = static_cast<int64_t>(std::min(order.size(), static_cast<size_t>(std::max(top_n, 0))));
  auto better = [&](int32_t a, int32_t b) {
    const float x = logits_[static_cast<size_t>(a)];
    const float y = logits_[static_cast<size_t>(b)];
    return x > y || (x == y && a < b);
  };
  std::partial_sort(order.begin(), order.begin() + count, order.end(), better);
  const float normalizer = model_->log_sum_exp(logits_);
  for (int64_t i = 0; i < count; ++i) {
    const int32_t id = order[static_cast<size_t>(i)];
    result.top.push_back({.id = id, .logprob = logits_[static_cast<size_t>(id)] - normalizer});
  }
  return result;
}

}  // namespace

Result<std::unique_ptr<Generator>> Generator::open(const ModelOptions& options) {
  return LocalGenerator::open(options);
}

}  // namespace quire
