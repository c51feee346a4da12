#include "quantize/quantizer.h"

#include <algorithm>
#include <utility>

#include "model/check_codes.h"
#include "quantize/awq.h"

namespace quire {
namespace {

bool uses_text(const QuantizeOptions& options) { return options.scheme != QuantizeScheme::kRtn || options.importance; }

// Every type that a linear of the model has on the device during the walk.
LinearReaders readers_of(const Checkpoint& checkpoint, const ModelConfig& config, const QuantizeOptions& options) {
  LinearReaders readers = linear_readers(config, checkpoint, {});
  if (options.scheme != QuantizeScheme::kGptq) return readers;
  const bool ordered = options.gptq.act_order && !options.gptq.static_groups;
  readers = {};
  for (size_t layer = 0; layer < config.layers.size(); ++layer) {
    for (const LayerLinear linear : kLayerLinears) {
      const TensorRef& tensor = *checkpoint.find(tensor_name(layer, linear));
      const WeightType type = weight_type(options.grid(tensor), tensor.columns(), ordered);
      std::vector<WeightType>* to[] = {&readers.qkv, &readers.o, &readers.gate_up, &readers.down};
      std::vector<WeightType>& types = *to[static_cast<size_t>(input_of(linear))];
      if (std::ranges::find(types, type) == types.end()) types.push_back(type);
    }
  }
  return readers;
}

}  // namespace

Result<std::unique_ptr<Quantizer>> Quantizer::create(const Checkpoint& checkpoint, const ModelConfig& config,
                                                     Device& device, std::span<const std::vector<int32_t>> sequences,
                                                     const QuantizeOptions& options) {
  std::unique_ptr<Quantizer> quantizer(new Quantizer(checkpoint, config, device, options));
  if (uses_text(options)) {
    QUIRE_ASSIGN_OR_RETURN(quantizer->walk_, LayerWalk::create(checkpoint, config, device, sequences,
                                                               readers_of(checkpoint, config, options)));
  }
  return quantizer;
}

Result<QuantizedLayer> Quantizer::quantize(size_t layer) {
  LayerParts parts(checkpoint_, layer, device_);
  for (const LayerLinear linear : kLayerLinears)
    QUIRE_RETURN_IF_ERROR(check_codes(parts.tensor(linear), device_, checkpoint_.path()));
  QuantizedLayer out;
  const LayerConfig& config = config_.layers[layer];
  if (options_.scheme == QuantizeScheme::kGptq) {
    QUIRE_RETURN_IF_ERROR(with_gptq(config, parts, out));
  } else if (uses_text(options_)) {
    QUIRE_RETURN_IF_ERROR(with_stored_inputs(config, parts, out));
  } else {
    for (const LayerLinear linear : kLayerLinears) round(parts, linear, {}, out);
  }
  out.vectors = parts.vectors();
  return out;
}

void Quantizer::round(LayerParts& parts, LayerLinear linear, std::span<const float> importance, QuantizedLayer& out) {
  const TensorRef& tensor = parts.tensor(linear);
  out.linears[static_cast<size_t>(linear)] =
      round_to_nearest(device_, options_.grid(tensor), tensor.rows(), parts.values(linear), importance);
  parts.drop_values(linear);
}

Status Quantizer::with_gptq(const LayerConfig& layer, LayerParts& parts, QuantizedLayer& out) {
  for (int i = 0; i < kLayerInputs; ++i) {
    const auto input = static_cast<LayerInput>(i);
    Moments moments = walk_->observe(input, layer, parts.weights());
    const auto reader = std::ranges::find(kLayerLinears, input, input_of);
    QUIRE_ASSIGN_OR_RETURN(const GptqPlan plan, GptqPlan::create(device_, std::move(moments),
                                                                 options_.grid(parts.tensor(*reader)), options_.gptq));
    for (const LayerLinear linear : kLayerLinears) {
      if (input_of(linear) != input) continue;
      const TensorRef& tensor = parts.tensor(linear);
      const GridSpec spec = options_.grid(tensor);
      QuantizedRows& rows = out.linears[static_cast<size_t>(linear)];
      rows = plan.quantize(device_, spec, tensor.rows(), std::move(parts.values(linear)));
      parts.drop_values(linear);
      QUIRE_RETURN_IF_ERROR(parts.use(linear, spec, rows));
    }
  }
  walk_->finish_layer(layer, parts.weights());
  return {};
}

Status Quantizer::with_stored_inputs(const LayerConfig& layer, LayerParts& parts, QuantizedLayer& out) {
  for (const LayerLinear linear : kLayerLinears) QUIRE_RETURN_IF_ERROR(parts.use_stored(linear));
  LayerMoments moments;
  for (int i = 0; i < kLayerInputs; ++i)
    moments[static_cast<size_t>(i)] = walk_->observe(static_cast<LayerInput>(i), layer, parts.weights());
  walk_->finish_layer(layer, parts.weights());
  const bool awq = options_.scheme == QuantizeScheme::kAwq;
  if (awq) scale_for_awq(device_, config_, options_.grid, parts, moments);
  for (const LayerLinear linear : kLayerLinears) {
    const Moments& input = moments[static_cast<size_t>(input_of(linear))];
    std::vector<float> importance;
    if (awq) {
      // Scores are products of two of these: clipping them costs more than it gains.
      if (linear != LayerLinear::kQ && linear != LayerLinear::kK)
        clip_for_awq(device_, options_.grid(parts.tensor(linear)), input, parts.values(linear));
    } else {
      for (int64_t column = 0; column < input.k; ++column) importance.push_back(input.diagonal(column));
    }
    round(parts, linear, importance, out);
  }
  return {};
}

}  // namespace quire
