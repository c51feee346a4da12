// One layer of a model taken apart for quantization: its linears as values, its vectors, and both on a device for the
// forward pass.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "device/device.h"
#include "device/memory.h"
#include "formats/checkpoint.h"
#include "model/weights.h"
#include "quantize/grid.h"
#include "quantize/layer_walk.h"

namespace quire {

// The linears of a layer, in the order of the forward pass.
enum class LayerLinear { kQ, kK, kV, kO, kGate, kUp, kDown };
inline constexpr std::array kLayerLinears = {LayerLinear::kQ,    LayerLinear::kK,  LayerLinear::kV,   LayerLinear::kO,
                                             LayerLinear::kGate, LayerLinear::kUp, LayerLinear::kDown};

LayerInput input_of(LayerLinear linear);
std::string tensor_name(size_t layer, LayerLinear linear);  // "blk.3.attn_q.weight"

// How the device stores what a grid makes.
WeightType weight_type(const GridSpec& spec, int64_t k, bool ordered);

class LayerParts {
 public:
  LayerParts(const Checkpoint& checkpoint, size_t layer, Device& device);

  const TensorRef& tensor(LayerLinear linear) const { return *linears_[index(linear)].tensor; }
  // [n][k] as decoded, scaled by whatever scale_*() were called; kept until drop_values().
  std::vector<float>& values(LayerLinear linear);
  void drop_values(LayerLinear linear) { std::vector<float>().swap(linears_[index(linear)].values); }
  // A vector of the layer by the end of its name ("attn_norm.weight"); null: the model has none.
  std::vector<float>* vector(std::string_view name);
  const std::map<std::string, std::vector<float>, std::less<>>& vectors() const { return vectors_; }

  // What the forward pass multiplies with: the linear as the checkpoint has it, or as it became.
  Status use_stored(LayerLinear linear);
  Status use(LayerLinear linear, const GridSpec& spec, const QuantizedRows& rows);
  const LayerWeights& weights();

 private:
  struct Linear {
    const TensorRef* tensor = nullptr;
    std::vector<float> values;
    Buffer memory;
    std::vector<int32_t> order;
    LinearWeight packed;
  };
  static size_t index(LayerLinear linear) { return static_cast<size_t>(linear); }
  Status pack(Linear& linear, const LinearSource& source);

  Device& device_;
  std::array<Linear, kLayerLinears.size()> linears_;
  std::map<std::string, std::vector<float>, std::less<>> vectors_;
  LayerWeights weights_;
};

}  // namespace quire
