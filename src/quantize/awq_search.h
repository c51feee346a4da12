// The search for the scales of AWQ (awq.h): one for each channel that a group of linears reads.
#pragma once

#include <cstdint>
#include <vector>

#include "device/device.h"
#include "quantize/gptq.h"
#include "quantize/grid.h"
#include "quantize/layer_parts.h"

namespace quire {

// Linears that read one input, scaled together.
struct ScaledLinears {
  const Moments& moments;
  std::vector<LayerLinear> linears;
  // The scale that each column of the linears follows: several columns may share one. Empty: its own.
  std::vector<int32_t> scale_of;
  int64_t scales = 0;
};

// What to multiply columns by so that rounding hurts the products least. [what.scales]; all 1 where nothing helps.
std::vector<float> search_scales(Device& device, const GridSpec& spec, LayerParts& layer, const ScaledLinears& what);

}  // namespace quire
