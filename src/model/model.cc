#include "model/model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "model/layer.h"

namespace quire {

Model::Model(const Checkpoint& checkpoint, const ModelConfig& config, std::unique_ptr<Device> device)
    : config_(config), checkpoint_(checkpoint), device_(std::move(device)), ropes_(rope_tables(checkpoint, config)) {}

Result<std::unique_ptr<Model>> Model::load(const Checkpoint& checkpoint, const ModelConfig& config,
                                           std::unique_ptr<Device> device, const ModelLimits& limits,
                                           const std::function<void(double)>& progress) {
  std::unique_ptr<Model> model(new Model(checkpoint, config, std::move(device)));
  QUIRE_ASSIGN_OR_RETURN(model->weights_, load_weights(config, checkpoint, limits.weights, *model->device_, progress));
  QUIRE_RETURN_IF_ERROR(model->allocate(limits));
  return model;
}

Result<std::unique_ptr<Model>> Model::share(const Model& owner, std::unique_ptr<Device> device,
                                            const ModelLimits& limits) {
  QUIRE_CHECK(device->sizes().layout() == owner.device_->sizes().layout());
  std::unique_ptr<Model> model(new Model(owner.checkpoint_, owner.config_, std::move(device)));
  model->weights_.embedding = owner.weights_.embedding;
  model->weights_.output_norm = owner.weights_.output_norm;
  model->weights_.head = owner.weights_.head;
  model->weights_.layers = owner.weights_.layers;
  QUIRE_RETURN_IF_ERROR(model->allocate(limits));
  return model;
}

Status Model::allocate(const ModelLimits& limits) {
  device_->tune(weights_.head);
  QUIRE_ASSIGN_OR_RETURN(kv_, KvStore::create(config_, *device_, limits.kv_pages, limits.touch_kv));
  QUIRE_ASSIGN_OR_RETURN(work_, Workspace::create(config_, linear_readers(config_, checkpoint_, limits.weights.head),
                                                  limits.workspace, *device_));
  return checkpoint_.unchanged();  // rope tables came from it
}

Status Model::forward(const StepInput& input) {
  int64_t rows = 0;
  spans_.assign(config_.kv_groups.size(), {});
  for (const SequenceRows& sequence : input.sequences) {
    for (size_t g = 0; g < spans_.size(); ++g) {
      spans_[g].push_back({.first_row = rows,
                           .rows = sequence.rows,
                           .first_position = sequence.first_position,
                           .page_table = sequence.page_tables[g]});
    }
    rows += sequence.rows;
  }
  QUIRE_CHECK(rows > 0 && rows <= work_.limits.max_rows);
  for (LinearInput* a : {work_.attn_in.get(), work_.attn_out.get(), work_.ffn_in.get(), work_.ffn_mid.get()})
    a->set_rows(rows);

  if (input.hidden_in != nullptr) {
    std::copy_n(input.hidden_in, rows * config_.hidden, work_.x);
  } else {
    QUIRE_RETURN_IF_ERROR(embed(input, rows));
  }
  fill_rope(input, rows);
  const auto first = static_cast<size_t>(input.first_layer);
  const size_t last = input.last_layer < 0 ? config_.layers.size() : static_cast<size_t>(input.last_layer);
  if (first < last) {
    device_->norm(work_.x, rows, config_.hidden, {weights_.layers[first].attn_norm, config_.norm_eps}, *work_.attn_in);
  }
  for (size_t i = first; i < last; ++i) run_layer(i, i + 1 == last, rows);
  if (input.hidden_out != nullptr) std::copy_n(work_.x, rows * config_.hidden, input.hidden_out);
  return {};
}

Status Model::embed(const StepInput& input, int64_t rows) {
  device_->parallel(rows, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      float* x = work_.x + row * config_.hidden;
      weights_.embedding->decode_f32(input.tokens[static_cast<size_t>(row)], 1, x);
      if (config_.embedding_scale == 1.0f) continue;
      for (int64_t i = 0; i < config_.hidden; ++i) x[i] *= config_.embedding_scale;
    }
  });
  return checkpoint_.unchanged();
}

void Model::fill_rope(const StepInput& input, int64_t rows) {
  const int64_t half = config_.rope_dim / 2;
  std::vector<int64_t> positions;
  positions.reserve(static_cast<size_t>(rows));
  for (const SequenceRows& sequence : input.sequences) {
    for (int64_t i = 0; i < sequence.rows; ++i) positions.push_back(sequence.first_position + i);
  }
  device_->parallel(rows, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      for (size_t r = 0; r < ropes_.size(); ++r) {
        ropes_[r].fill(positions[static_cast<size_t>(row)], work_.rope_cos[r] + row * half,
                       work_.rope_sin[r] + row * half);
      }
    }
  });
}

void Model::run_layer(size_t index, bool last, int64_t rows) {
  const LayerConfig& layer = config_.layers[index];
  const auto kv_width = static_cast<size_t>(config_.heads.kv_heads * config_.heads.head_dim);
  const QkvStatistics statistics = observed_ != nullptr ? observed_->layer(config_, index) : QkvStatistics{};
  const LayerStep step = {.device = *device_,
                          .config = config_,
                          .layer = layer,
                          .weights = weights_.layers[index],
                          .k_factors = k_factors_.empty() ? nullptr : k_factors_.data() + index * kv_width,
                          .statistics = observed_ != nullptr ? &statistics : nullptr,
                          .work = work_,
                          .spans = spans_[static_cast<size_t>(layer.kv_group)],
                          .kv = kv_.layer(layer),
                          .x = work_.x,
                          .rows = rows};
  attend(step);
  project_attention(step);
  gate_up(step);
  project_ffn(step, last ? nullptr : weights_.layers[index + 1].attn_norm);
}

void Model::logits(std::span<const int32_t> rows, float* out) { head(weights_.head, rows, out); }

void Model::head(const LinearWeight& weight, std::span<const int32_t> rows, float* out) {
  device_->head({.x = work_.x,
                 .rows = rows,
                 .norm = {weights_.output_norm, config_.norm_eps},
                 .weight = weight,
                 .softcap = config_.final_softcap,
                 .scratch = work_.head_in.get(),
                 .logits = out});
}

int64_t Model::kv_tokens() const {
  int64_t tokens = work_.limits.max_context;
  for (size_t g = 0; g < config_.kv_groups.size(); ++g)
    tokens = std::min(tokens, kv_.pages(static_cast<int>(g)) * kPageTokens);
  return tokens;
}

Result<std::vector<float>> Model::measure_k_factors(std::span<const std::vector<int32_t>> passages) {
  KvObservations seen(config_);
  const std::vector<float> factors = std::exchange(k_factors_, {});
  observed_ = &seen;
  Status computed;
  std::vector<int32_t> pages(static_cast<size_t>((kv_tokens() + kPageTokens - 1) / kPageTokens));
  std::iota(pages.begin(), pages.end(), 0);
  const std::vector<const int32_t*> tables(config_.kv_groups.size(), pages.data());
  for (const std::vector<int32_t>& passage : passages) {
    const int64_t tokens = std::min(static_cast<int64_t>(passage.size()), kv_tokens());
    for (int64_t first = 0; first < tokens && computed.ok(); first += work_.limits.max_rows) {
      const int64_t rows = std::min(work_.limits.max_rows, tokens - first);
      StepInput input;
      input.sequences.push_back({.rows = rows, .first_position = first, .page_tables = tables});
      input.tokens.assign(passage.begin() + first, passage.begin() + first + rows);
      computed = forward(input);
    }
  }
  observed_ = nullptr;
  k_factors_ = factors;
  QUIRE_RETURN_IF_ERROR(computed);
  return choose_k_factors(config_, seen);
}

void Model::set_k_factors(std::vector<float> factors) {
  QUIRE_CHECK(factors.empty() || check_k_factors(config_, factors, "").ok());
  k_factors_ = std::move(factors);
}

Result<double> Model::head_divergence(std::span<const int32_t> tokens) {
  Buffer memory;
  QUIRE_ASSIGN_OR_RETURN(const LinearWeight stored, pack_stored_head(config_, checkpoint_, *device_, memory));
  const int64_t rows = std::min({static_cast<int64_t>(tokens.size()), work_.limits.max_rows, kv_tokens()});
  QUIRE_CHECK(rows > 0);
  std::vector<int32_t> pages(static_cast<size_t>((rows + kPageTokens - 1) / kPageTokens));
  std::iota(pages.begin(), pages.end(), 0);
  StepInput input;
  input.sequences.push_back(
      {.rows = rows, .page_tables = std::vector<const int32_t*>(config_.kv_groups.size(), pages.data())});
  input.tokens.assign(tokens.begin(), tokens.begin() + rows);
  QUIRE_RETURN_IF_ERROR(forward(input));
  std::vector<float> p(static_cast<size_t>(config_.vocab_size));
  std::vector<float> q(p.size());
  double total = 0;
  for (int32_t row = 0; row < rows; ++row) {
    head(stored, {&row, 1}, p.data());
    logits({&row, 1}, q.data());
    const double p_sum = log_sum_exp(p);
    const double q_sum = log_sum_exp(q);
    for (size_t i = 0; i < p.size(); ++i) {
      const double log_p = double{p[i]} - p_sum;
      total += std::exp(log_p) * (log_p - (double{q[i]} - q_sum));
    }
  }
  return total / static_cast<double>(rows);
}

float Model::log_sum_exp(std::span<const float> logits) {
  float result = 0;
  device_->log_sum_exp(logits.data(), 1, static_cast<int64_t>(logits.size()), &result);
  return result;
}

}  // namespace quire
