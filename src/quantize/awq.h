// Activation-aware weight quantization (AWQ, Lin et al. 2023, arXiv 2306.00978): input channels that carry much are scaled
// up before rounding, and what precedes them is scaled down, so that the model stays the same and rounding hurts it less;
// then the range of each group is clipped where that helps.
//
// Errors are those of the linears' outputs over the whole text, computed from the moments of their inputs.
#pragma once

#include <array>

#include "device/device.h"
#include "model/config.h"
#include "quantize/gptq.h"
#include "quantize/grid.h"
#include "quantize/layer_parts.h"

namespace quire {

using LayerMoments = std::array<Moments, kLayerInputs>;  // by LayerInput

// Scales a layer's values and vectors, and `moments` to match.
void scale_for_awq(Device& device, const ModelConfig& config, const GridChoice& grid, LayerParts& layer,
                   LayerMoments& moments);

// Clips values [n][k] to ranges, a group at a time, that make the rounding error of the products smaller, given the errors of
// the other groups of the row.
void clip_for_awq(Device& device, const GridSpec& spec, const Moments& moments, std::vector<float>& values);

}  // namespace quire
