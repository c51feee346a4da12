#include "quantize/layer_walk.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "model/layer.h"
#include "model/rope.h"

namespace quire {
namespace {

// Adds up the moments of rows that it is shown.
class MomentSums {
 public:
  MomentSums(Device& device, int64_t k) : device_(device), k_(k), magnitudes_(static_cast<size_t>(k)) {
    moments_.k = k;
    moments_.products.resize(static_cast<size_t>(k * k));
  }

  void add(const float* rows, int64_t count) {
    device_.matmul({.a = {rows, 1, k_},
                    .b = {rows, 1, k_},
                    .m = k_,
                    .n = k_,
                    .k = count,
                    .c = moments_.products.data(),
                    .c_stride = k_,
                    .lower = true});
    constexpr int64_t kColumns = 64;
    device_.parallel((k_ + kColumns - 1) / kColumns, [&](int64_t begin, int64_t end) {
      const int64_t first = begin * kColumns;
      const int64_t last = std::min(end * kColumns, k_);
      for (int64_t row = 0; row < count; ++row) {
        const float* x = rows + row * k_;
        for (int64_t i = first; i < last; ++i) magnitudes_[static_cast<size_t>(i)] += std::fabs(x[i]);
      }
    });
    rows_ += count;
  }

  Moments finish() {
    const float share = 1 / static_cast<float>(rows_);
    device_.parallel(k_, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        for (int64_t j = 0; j <= i; ++j) moments_.products[static_cast<size_t>(i * k_ + j)] *= share;
      }
    });
    device_.parallel(k_, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        for (int64_t j = i + 1; j < k_; ++j)
          moments_.products[static_cast<size_t>(i * k_ + j)] = moments_.products[static_cast<size_t>(j * k_ + i)];
      }
    });
    for (const double sum : magnitudes_) moments_.magnitudes.push_back(static_cast<float>(sum) * share);
    return std::move(moments_);
  }

 private:
  Device& device_;
  int64_t k_;
  int64_t rows_ = 0;
  std::vector<double> magnitudes_;
  Moments moments_;
};

}  // namespace

Result<std::unique_ptr<LayerWalk>> LayerWalk::create(const Checkpoint& checkpoint, const ModelConfig& config,
                                                     Device& device, std::span<const std::vector<int32_t>> sequences,
                                                     const LinearReaders& readers) {
  QUIRE_CHECK(!sequences.empty() && !sequences[0].empty());
  std::unique_ptr<LayerWalk> walk(new LayerWalk(config, device));
  walk->length_ = static_cast<int64_t>(sequences[0].size());
  walk->sequences_ = static_cast<int64_t>(sequences.size());
  for (KvGroup& group : walk->config_.kv_groups) group.layers = 1;
  const int64_t pages = (walk->length_ + kPageTokens - 1) / kPageTokens;
  walk->pages_.resize(static_cast<size_t>(pages));
  std::iota(walk->pages_.begin(), walk->pages_.end(), 0);
  QUIRE_ASSIGN_OR_RETURN(
      walk->kv_, KvStore::create(walk->config_, device, std::vector<int64_t>(config.kv_groups.size(), pages), true));
  const WorkspaceLimits limits = {.max_rows = walk->length_, .max_context = walk->length_, .keep_inputs = true};
  QUIRE_ASSIGN_OR_RETURN(walk->work_, Workspace::create(config, readers, limits, device));
  Workspace& work = walk->work_;
  for (LinearInput* a : {work.attn_in.get(), work.attn_out.get(), work.ffn_in.get(), work.ffn_mid.get()})
    a->set_rows(walk->length_);
  walk->embed(checkpoint, sequences);
  walk->fill_rope(checkpoint, config);
  QUIRE_RETURN_IF_ERROR(checkpoint.unchanged());
  return walk;
}

void LayerWalk::embed(const Checkpoint& checkpoint, std::span<const std::vector<int32_t>> sequences) {
  const int64_t hidden = config_.hidden;
  residual_.resize(static_cast<size_t>(sequences_ * length_ * hidden));
  held_.resize(static_cast<size_t>(sequences_ * length_ *
                                   std::max(config_.heads.heads * config_.heads.head_dim, config_.ffn_hidden)));
  const TensorRef* embedding = checkpoint.find("token_embd.weight");
  QUIRE_CHECK(embedding != nullptr);
  device_.parallel(sequences_ * length_, [&](int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token) {
      float* x = residual_.data() + token * hidden;
      const std::vector<int32_t>& sequence = sequences[static_cast<size_t>(token / length_)];
      embedding->decode_f32(sequence[static_cast<size_t>(token % length_)], 1, x);
      for (int64_t i = 0; i < hidden; ++i) x[i] *= config_.embedding_scale;
    }
  });
}

void LayerWalk::fill_rope(const Checkpoint& checkpoint, const ModelConfig& config) {
  const std::vector<RopeTable> tables = rope_tables(checkpoint, config);
  const int64_t half = config.rope_dim / 2;
  for (size_t r = 0; r < tables.size(); ++r) {
    for (int64_t position = 0; position < length_; ++position)
      tables[r].fill(position, work_.rope_cos[r] + position * half, work_.rope_sin[r] + position * half);
  }
}

template <typename Step>
void LayerWalk::for_sequences(const LayerConfig& layer, const LayerWeights& weights, Step&& step) {
  LayerConfig alone = layer;
  alone.index_in_group = 0;
  const SequenceSpan span = {.first_row = 0, .rows = length_, .first_position = 0, .page_table = pages_.data()};
  for (int64_t s = 0; s < sequences_; ++s) {
    step(LayerStep{.device = device_,
                   .config = config_,
                   .layer = alone,
                   .weights = weights,
                   .work = work_,
                   .spans = {&span, 1},
                   .kv = kv_.layer(alone),
                   .x = residual_.data() + s * length_ * config_.hidden,
                   .rows = length_},
         s * length_);
  }
}

void LayerWalk::hold(const LinearInput& values, int64_t k, int64_t first_token) {
  std::copy_n(values.values(0), length_ * k, held_.data() + first_token * k);
}

Moments LayerWalk::observe(LayerInput input, const LayerConfig& layer, const LayerWeights& weights) {
  const int64_t hidden = config_.hidden;
  const int64_t attention = config_.heads.heads * config_.heads.head_dim;
  const int64_t k = input == LayerInput::kAttentionOutput ? attention
                    : input == LayerInput::kFfnMiddle     ? config_.ffn_hidden
                                                          : hidden;
  MomentSums sums(device_, k);
  const Norm attn_norm = {weights.attn_norm, config_.norm_eps};
  const Norm ffn_norm = {weights.ffn_norm, config_.norm_eps};
  for_sequences(layer, weights, [&](const LayerStep& step, int64_t first_token) {
    switch (input) {
      case LayerInput::kAttention:
        device_.norm(step.x, length_, hidden, attn_norm, *work_.attn_in);
        sums.add(work_.attn_in->values(0), length_);
        return;
      case LayerInput::kAttentionOutput:
        device_.norm(step.x, length_, hidden, attn_norm, *work_.attn_in);
        attend(step);
        hold(*work_.attn_out, k, first_token);
        sums.add(work_.attn_out->values(0), length_);
        return;
      case LayerInput::kFfn:
        device_.norm(held_.data() + first_token * attention, length_, attention, Norm{}, *work_.attn_out);
        project_attention(step);
        sums.add(work_.ffn_in->values(0), length_);
        return;
      case LayerInput::kFfnMiddle:
        device_.norm(step.x, length_, hidden, ffn_norm, *work_.ffn_in);
        gate_up(step);
        hold(*work_.ffn_mid, k, first_token);
        sums.add(work_.ffn_mid->values(0), length_);
        return;
    }
  });
  return sums.finish();
}

void LayerWalk::finish_layer(const LayerConfig& layer, const LayerWeights& weights) {
  const int64_t k = config_.ffn_hidden;
  for_sequences(layer, weights, [&](const LayerStep& step, int64_t first_token) {
    device_.norm(held_.data() + first_token * k, length_, k, Norm{}, *work_.ffn_mid);
    project_ffn(step, nullptr);
  });
}

}  // namespace quire
