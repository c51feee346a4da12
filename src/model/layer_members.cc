#include "model/layer_members.h"

#include "base/check.h"

namespace quire {

LinearMember linear_member(LayerTensor id) {
  switch (id) {
    case LayerTensor::kQ:
      return &LayerWeights::q;
    case LayerTensor::kK:
      return &LayerWeights::k;
    case LayerTensor::kV:
      return &LayerWeights::v;
    case LayerTensor::kO:
      return &LayerWeights::o;
    case LayerTensor::kGate:
      return &LayerWeights::gate;
    case LayerTensor::kUp:
      return &LayerWeights::up;
    case LayerTensor::kDown:
      return &LayerWeights::down;
    default:
      QUIRE_CHECK(false);
      return nullptr;
  }
}

VectorMember vector_member(LayerTensor id) {
  switch (id) {
    case LayerTensor::kAttnNorm:
      return &LayerWeights::attn_norm;
    case LayerTensor::kQBias:
      return &LayerWeights::q_bias;
    case LayerTensor::kKBias:
      return &LayerWeights::k_bias;
    case LayerTensor::kVBias:
      return &LayerWeights::v_bias;
    case LayerTensor::kQNorm:
      return &LayerWeights::q_norm;
    case LayerTensor::kKNorm:
      return &LayerWeights::k_norm;
    case LayerTensor::kOBias:
      return &LayerWeights::o_bias;
    case LayerTensor::kPostAttnNorm:
      return &LayerWeights::post_attn_norm;
    case LayerTensor::kFfnNorm:
      return &LayerWeights::ffn_norm;
    case LayerTensor::kGateBias:
      return &LayerWeights::gate_bias;
    case LayerTensor::kUpBias:
      return &LayerWeights::up_bias;
    case LayerTensor::kDownBias:
      return &LayerWeights::down_bias;
    case LayerTensor::kPostFfnNorm:
      return &LayerWeights::post_ffn_norm;
    default:
      QUIRE_CHECK(false);
      return nullptr;
  }
}

}  // namespace quire
