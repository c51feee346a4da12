#include "quantize/awq.h"

#include <functional>
#include <span>
#include <utility>

#include "quantize/awq_search.h"

namespace quire {
namespace {

// Multiplies columns, and shrinks what they read.
void apply(Device& device, LayerParts& layer, const ScaledLinears& what, std::span<const float> scales,
           Moments& moments) {
  const int64_t k = moments.k;
  std::vector<float> columns(static_cast<size_t>(k));
  for (size_t i = 0; i < columns.size(); ++i)
    columns[i] = scales[what.scale_of.empty() ? i : static_cast<size_t>(what.scale_of[i])];
  for (const LayerLinear linear : what.linears) {
    std::vector<float>& values = layer.values(linear);
    device.parallel(layer.tensor(linear).rows(), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        for (int64_t i = 0; i < k; ++i) values[static_cast<size_t>(row * k + i)] *= columns[static_cast<size_t>(i)];
      }
    });
  }
  device.parallel(k, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t j = 0; j < k; ++j)
        moments.products[static_cast<size_t>(i * k + j)] /=
            columns[static_cast<size_t>(i)] * columns[static_cast<size_t>(j)];
      moments.magnitudes[static_cast<size_t>(i)] /= columns[static_cast<size_t>(i)];
    }
  });
}

void divide(std::vector<float>* vector, std::span<const float> scales) {
  if (vector == nullptr) return;
  for (size_t i = 0; i < scales.size(); ++i) (*vector)[i] /= scales[i];
}

// The rows of a linear and their biases.
void divide_rows(LayerParts& layer, LayerLinear linear, std::string_view bias, std::span<const float> scales) {
  std::vector<float>& values = layer.values(linear);
  const int64_t k = layer.tensor(linear).columns();
  for (size_t row = 0; row < scales.size(); ++row) {
    for (int64_t i = 0; i < k; ++i) values[row * static_cast<size_t>(k) + static_cast<size_t>(i)] /= scales[row];
  }
  divide(layer.vector(bias), scales);
}

}  // namespace

void scale_for_awq(Device& device, const ModelConfig& config, const GridChoice& grid, LayerParts& layer,
                   LayerMoments& moments) {
  const auto search = [&](LayerInput input, std::vector<LayerLinear> linears, std::vector<int32_t> scale_of,
                          int64_t scales, const std::function<void(std::span<const float>)>& precede) {
    Moments& at = moments[static_cast<size_t>(input)];
    const ScaledLinears what = {
        .moments = at, .linears = std::move(linears), .scale_of = std::move(scale_of), .scales = scales};
    const GridSpec spec = grid(layer.tensor(what.linears.front()));
    const std::vector<float> found = search_scales(device, spec, layer, what);
    apply(device, layer, what, found, at);
    precede(found);
  };
  using L = LayerLinear;
  search(LayerInput::kAttention, {L::kQ, L::kK, L::kV}, {}, config.hidden,
         [&](std::span<const float> scales) { divide(layer.vector("attn_norm.weight"), scales); });
  // A channel of V meets all query heads that share it.
  const HeadShape& shape = config.heads;
  std::vector<int32_t> value_channel(static_cast<size_t>(shape.heads * shape.head_dim));
  for (int64_t i = 0; i < shape.heads * shape.head_dim; ++i) {
    const int64_t kv_head = i / shape.head_dim / (shape.heads / shape.kv_heads);
    value_channel[static_cast<size_t>(i)] = static_cast<int32_t>(kv_head * shape.head_dim + i % shape.head_dim);
  }
  search(LayerInput::kAttentionOutput, {L::kO}, std::move(value_channel), shape.kv_heads * shape.head_dim,
         [&](std::span<const float> scales) { divide_rows(layer, L::kV, "attn_v.bias", scales); });
  search(LayerInput::kFfn, {L::kGate, L::kUp}, {}, config.hidden,
         [&](std::span<const float> scales) { divide(layer.vector("ffn_norm.weight"), scales); });
  search(LayerInput::kFfnMiddle, {L::kDown}, {}, config.ffn_hidden,
         [&](std::span<const float> scales) { divide_rows(layer, L::kUp, "ffn_up.bias", scales); });
}

}  // namespace quire
