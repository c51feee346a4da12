// Where each row of formats/layer_tensors.h stands in LayerWeights.
#pragma once

#include <variant>

#include "formats/layer_tensors.h"
#include "model/weights.h"

namespace quire {

using LinearMember = LinearWeight LayerWeights::*;
using VectorMember = const float* LayerWeights::*;  // biases and norms; null where the model has none

LinearMember linear_member(LayerTensor id);  // of a row whose kind is kLinear
VectorMember vector_member(LayerTensor id);  // of any other

}  // namespace quire
