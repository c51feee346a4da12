// Takes a text through a model one layer at a time, all of the text through each step of a layer before the next step: so
// that the linears of a step can be replaced, by quantized ones, before anything that depends on them is computed. One pass
// over the text in all, whatever is replaced.
//
// Holds the residual stream of the whole text, and one step's output: tokens * (hidden + max(heads * head_dim, ffn_hidden))
// floats. Thread: one caller, on the device's threads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "device/device.h"
#include "device/memory.h"
#include "formats/checkpoint.h"
#include "model/config.h"
#include "model/kv_store.h"
#include "model/weights.h"
#include "model/workspace.h"
#include "quantize/gptq.h"

namespace quire {

inline constexpr int kLayerInputs = 4;  // formats/layer_tensors.h, LayerInput

class LayerWalk {
 public:
  // The text in sequences of equal length, each of which starts anew. `readers`: the types of all linears that it will meet.
  static Result<std::unique_ptr<LayerWalk>> create(const Checkpoint& checkpoint, const ModelConfig& config,
                                                   Device& device, std::span<const std::vector<int32_t>> sequences,
                                                   const LinearReaders& readers);

  // Computes an input of the layer's linears for the whole text, from the input before it, and returns its moments.
  Moments observe(LayerInput input, const LayerConfig& layer, const LayerWeights& weights);
  // The layer's last step, after kFfnMiddle.
  void finish_layer(const LayerConfig& layer, const LayerWeights& weights);

  // The residual stream, [tokens][hidden]: what a walk is resumed from.
  std::span<float> residual() { return residual_; }

 private:
  LayerWalk(const ModelConfig& config, Device& device) : config_(config), device_(device) {}

  void embed(const Checkpoint& checkpoint, std::span<const std::vector<int32_t>> sequences);
  void fill_rope(const Checkpoint& checkpoint, const ModelConfig& config);
  // Runs `step` for each sequence with what it needs; `first_token` of the sequence in the text.
  template <typename Step>
  void for_sequences(const LayerConfig& layer, const LayerWeights& weights, Step&& step);
  void hold(const LinearInput& values, int64_t k, int64_t first_token);

  ModelConfig config_;  // with one layer a KV group
  Device& device_;
  int64_t length_ = 0;  // tokens of a sequence
  int64_t sequences_ = 0;
  std::vector<float> residual_;
  std::vector<float> held_;  // [tokens][of the step]
  std::vector<int32_t> pages_;
  KvStore kv_;
  Workspace work_;
};

}  // namespace quire
