// Quantizes a model layer by layer.
//
// RTN rounds each weight to the nearest code. GPTQ quantizes the linears in the order of the forward pass, each with the
// inputs that the quantized ones before it give (its `true_sequential`). AWQ scales and clips a layer, given the inputs of
// the layer as stored, then rounds. Thread: one caller, on the device's threads.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "device/device.h"
#include "formats/checkpoint.h"
#include "model/config.h"
#include "quantize/gptq.h"
#include "quantize/grid.h"
#include "quantize/layer_parts.h"
#include "quantize/layer_walk.h"

namespace quire {

enum class QuantizeScheme { kRtn, kGptq, kAwq };

struct QuantizeOptions {
  QuantizeScheme scheme = QuantizeScheme::kGptq;
  GridChoice grid;
  GptqOptions gptq;
  bool importance = false;  // RTN: scales are chosen with the mean squares of the columns' inputs
};

struct QuantizedLayer {
  std::array<QuantizedRows, kLayerLinears.size()> linears;         // by LayerLinear
  std::map<std::string, std::vector<float>, std::less<>> vectors;  // by the end of their names: norms and biases
};

class Quantizer {
 public:
  // The text, in sequences of equal length, is used by all but plain RTN. Checkpoint and device must outlive this.
  static Result<std::unique_ptr<Quantizer>> create(const Checkpoint& checkpoint, const ModelConfig& config,
                                                   Device& device, std::span<const std::vector<int32_t>> sequences,
                                                   const QuantizeOptions& options);

  // Layers in ascending order.
  Result<QuantizedLayer> quantize(size_t layer);

  // What a later run goes on from; empty where no text is used.
  std::span<float> residual() { return walk_ == nullptr ? std::span<float>() : walk_->residual(); }

 private:
  Quantizer(const Checkpoint& checkpoint, const ModelConfig& config, Device& device, const QuantizeOptions& options)
      : checkpoint_(checkpoint), config_(config), device_(device), options_(options) {}

  Status with_gptq(const LayerConfig& layer, LayerParts& parts, QuantizedLayer& out);
  Status with_stored_inputs(const LayerConfig& layer, LayerParts& parts, QuantizedLayer& out);
  void round(LayerParts& parts, LayerLinear linear, std::span<const float> importance, QuantizedLayer& out);

  const Checkpoint& checkpoint_;
  const ModelConfig config_;
  Device& device_;
  const QuantizeOptions options_;
  std::unique_ptr<LayerWalk> walk_;  // null: no text is used
};

}  // namespace quire
