#include "formats/layer_tensors.h"

#include <algorithm>
#include <array>

namespace quire {
namespace {

using enum LayerTensor;
constexpr TensorKind kLinear = TensorKind::kLinear;
constexpr TensorKind kBias = TensorKind::kBias;
constexpr TensorKind kNorm = TensorKind::kNorm;
using In = LayerInput;
using Of = Extent;

Presence present_if(bool has) { return has ? Presence::kAlways : Presence::kAbsent; }

Presence always(const Family&, const BiasRules&) { return Presence::kAlways; }
Presence qkv_bias(const Family&, const BiasRules& biases) { return biases.qkv; }
Presence output_bias(const Family&, const BiasRules& biases) { return biases.output; }
Presence mlp_bias(const Family&, const BiasRules& biases) { return biases.mlp; }
Presence with_qk_norms(const Family& family, const BiasRules&) { return present_if(family.qk_norm); }
Presence with_post_norms(const Family& family, const BiasRules&) { return present_if(family.post_norms); }

// clang-format off
constexpr std::array<LayerTensorRow, 20> kRows = {{
    {kAttnNorm, "attn_norm.weight", "input_layernorm.weight", "",
     kNorm, In::kAttention, Of::kHidden, Of::kNone, Cut::kReplicated, always},
    {kQ, "attn_q.weight", "self_attn.q_proj.weight", "",
     kLinear, In::kAttention, Of::kHeads, Of::kHidden, Cut::kHeads, always},
    {kK, "attn_k.weight", "self_attn.k_proj.weight", "",
     kLinear, In::kAttention, Of::kKvHeads, Of::kHidden, Cut::kKvHeads, always},
    {kV, "attn_v.weight", "self_attn.v_proj.weight", "",
     kLinear, In::kAttention, Of::kKvHeads, Of::kHidden, Cut::kKvHeads, always},
    {kQBias, "attn_q.bias", "self_attn.q_proj.bias", "",
     kBias, In::kAttention, Of::kHeads, Of::kNone, Cut::kHeads, qkv_bias},
    {kKBias, "attn_k.bias", "self_attn.k_proj.bias", "",
     kBias, In::kAttention, Of::kKvHeads, Of::kNone, Cut::kKvHeads, qkv_bias},
    {kVBias, "attn_v.bias", "self_attn.v_proj.bias", "",
     kBias, In::kAttention, Of::kKvHeads, Of::kNone, Cut::kKvHeads, qkv_bias},
    {kQNorm, "attn_q_norm.weight", "self_attn.q_norm.weight", "",
     kNorm, In::kAttention, Of::kHeadDim, Of::kNone, Cut::kReplicated, with_qk_norms},
    {kKNorm, "attn_k_norm.weight", "self_attn.k_norm.weight", "",
     kNorm, In::kAttention, Of::kHeadDim, Of::kNone, Cut::kReplicated, with_qk_norms},
    {kO, "attn_output.weight", "self_attn.o_proj.weight", "",
     kLinear, In::kAttentionOutput, Of::kHidden, Of::kHeads, Cut::kStrips, always},
    {kOBias, "attn_output.bias", "self_attn.o_proj.bias", "",
     kBias, In::kAttentionOutput, Of::kHidden, Of::kNone, Cut::kStrips, output_bias},
    {kPostAttnNorm, "post_attention_norm.weight", "", "post_attention_layernorm.weight",
     kNorm, In::kAttentionOutput, Of::kHidden, Of::kNone, Cut::kReplicated, with_post_norms},
    {kFfnNorm, "ffn_norm.weight", "post_attention_layernorm.weight", "pre_feedforward_layernorm.weight",
     kNorm, In::kFfn, Of::kHidden, Of::kNone, Cut::kReplicated, always},
    {kGate, "ffn_gate.weight", "mlp.gate_proj.weight", "",
     kLinear, In::kFfn, Of::kFfn, Of::kHidden, Cut::kGroups, always},
    {kUp, "ffn_up.weight", "mlp.up_proj.weight", "",
     kLinear, In::kFfn, Of::kFfn, Of::kHidden, Cut::kGroups, always},
    {kGateBias, "ffn_gate.bias", "mlp.gate_proj.bias", "",
     kBias, In::kFfn, Of::kFfn, Of::kNone, Cut::kGroups, mlp_bias},
    {kUpBias, "ffn_up.bias", "mlp.up_proj.bias", "",
     kBias, In::kFfn, Of::kFfn, Of::kNone, Cut::kGroups, mlp_bias},
    {kDown, "ffn_down.weight", "mlp.down_proj.weight", "",
     kLinear, In::kFfnMiddle, Of::kHidden, Of::kFfn, Cut::kStrips, always},
    {kDownBias, "ffn_down.bias", "mlp.down_proj.bias", "",
     kBias, In::kFfnMiddle, Of::kHidden, Of::kNone, Cut::kStrips, mlp_bias},
    {kPostFfnNorm, "post_ffw_norm.weight", "", "post_feedforward_layernorm.weight",
     kNorm, In::kFfnMiddle, Of::kHidden, Of::kNone, Cut::kReplicated, with_post_norms},
}};
// clang-format on

constexpr bool stands_in_order() {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].id != static_cast<LayerTensor>(i)) return false;
  }
  return true;
}
static_assert(stands_in_order(), "a row's place is its id");

int64_t size_of(Extent extent, const Hparams& h) {
  switch (extent) {
    case Extent::kNone:
      return 0;
    case Extent::kHidden:
      return h.hidden;
    case Extent::kHeads:
      return h.heads * h.head_dim;
    case Extent::kKvHeads:
      return h.kv_heads * h.head_dim;
    case Extent::kHeadDim:
      return h.head_dim;
    case Extent::kFfn:
      return h.ffn_hidden;
  }
  return 0;
}

}  // namespace

std::span<const LayerTensorRow> layer_tensors() { return kRows; }

const LayerTensorRow& layer_tensor(LayerTensor id) { return kRows[static_cast<size_t>(id)]; }

const LayerTensorRow* layer_tensor_by_name(std::string_view name) {
  const auto* row = std::ranges::find(kRows, name, &LayerTensorRow::name);
  return row != kRows.end() ? row : nullptr;
}

std::string_view hf_name_of(const LayerTensorRow& row, const Family& family) {
  const bool other = family.post_norms && !row.hf_name_with_post_norms.empty();
  return other ? row.hf_name_with_post_norms : row.hf_name;
}

const LayerTensorRow* layer_tensor_by_hf_name(std::string_view name, const Family& family) {
  for (const LayerTensorRow& row : kRows) {
    // A bias that the family never has is known by its name, so that it can be refused by it.
    if (row.kind != TensorKind::kBias && row.presence(family, {}) == Presence::kAbsent) continue;
    if (hf_name_of(row, family) == name) return &row;
  }
  return nullptr;
}

std::string tensor_name(size_t layer, LayerTensor id) {
  return "blk." + std::to_string(layer) + "." + std::string(layer_tensor(id).name);
}

std::vector<int64_t> shape_of(const LayerTensorRow& row, const Hparams& hparams) {
  std::vector<int64_t> shape = {size_of(row.rows, hparams)};
  if (row.columns != Extent::kNone) shape.push_back(size_of(row.columns, hparams));
  return shape;
}

}  // namespace quire
