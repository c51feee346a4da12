// The tensors of a layer, as rows of one table: readers, writers, loaders, quantizers and planners walk it. A tensor that no row
// names belongs to no model.
//
// Names are canonical (GGUF's, without "blk.N.") and Hugging Face's (without "model.layers.N."). Immutable, any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/families.h"
#include "formats/hparams.h"

namespace quire {

// In the order of the forward pass, which is the order in memory.
enum class LayerTensor : uint8_t {
  kAttnNorm,
  kQ,
  kK,
  kV,
  kQBias,
  kKBias,
  kVBias,
  kQNorm,
  kKNorm,
  kO,
  kOBias,
  kPostAttnNorm,
  kFfnNorm,
  kGate,
  kUp,
  kGateBias,
  kUpBias,
  kDown,
  kDownBias,
  kPostFfnNorm,
};

enum class TensorKind : uint8_t { kLinear, kBias, kNorm };

// What a linear reads. Linears that read the same are multiplied in one operation.
enum class LayerInput : uint8_t { kAttention, kAttentionOutput, kFfn, kFfnMiddle };

// A size that follows from the hyper-parameters.
enum class Extent : uint8_t {
  kNone,  // of a vector's second dimension
  kHidden,
  kHeads,    // heads x head_dim
  kKvHeads,  // kv_heads x head_dim
  kHeadDim,
  kFfn,
};

// Along which of its output rows ranks may divide a matrix, so that each computes whole parts.
enum class Cut : uint8_t {
  kReplicated,
  kHeads,    // whole heads of q
  kKvHeads,  // whole heads of k and v
  kGroups,   // 32 features
  kStrips,   // 16 rows
};

struct LayerTensorRow {
  LayerTensor id;
  std::string_view name;     // "attn_q.weight"
  std::string_view hf_name;  // "self_attn.q_proj.weight"
  // Hugging Face's name in families with norms on what attention and feed-forward return; empty: the same.
  std::string_view hf_name_with_post_norms;
  TensorKind kind;
  LayerInput input;  // of linears
  Extent rows;
  Extent columns;
  Cut cut;
  // Whether a model of the family has it. `biases` are the checkpoint's.
  Presence (*presence)(const Family& family, const BiasRules& biases);
};

std::span<const LayerTensorRow> layer_tensors();

const LayerTensorRow& layer_tensor(LayerTensor id);

// The one that a checkpoint calls so, without the layer; null: there is none. In Hugging Face's names a family decides.
const LayerTensorRow* layer_tensor_by_name(std::string_view name);
const LayerTensorRow* layer_tensor_by_hf_name(std::string_view name, const Family& family);
std::string_view hf_name_of(const LayerTensorRow& row, const Family& family);

// "blk.3.attn_q.weight"
std::string tensor_name(size_t layer, LayerTensor id);

// {rows, columns}, or {rows}.
std::vector<int64_t> shape_of(const LayerTensorRow& row, const Hparams& hparams);

}  // namespace quire
