#include "capacity/what_if.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/machine.h"
#include "capacity/memory_plan.h"
#include "capacity/model_setup.h"
#include "model/kv_store.h"
#include "model/weights.h"

namespace quire {
namespace {

constexpr int64_t kDefaultContext = 4096;

// How a file stores the matrices of its layers, its embedding and its output matrix. Absent: as they are stored now.
struct Scheme {
  std::string_view name;
  std::optional<WeightType> layers;
  std::optional<WeightType> embedding;
  std::optional<WeightType> head;
};

WeightType codes(CodeKind kind, int32_t group, bool zeros = false) {
  WeightType type(DType::kF16);  // of the scales
  type.codes = kind;
  type.group = group;
  type.zeros = zeros;
  return type;
}

// Tools that write codes with scales leave embedding and output matrix in 16 bits; llama.cpp's quantizer stores the output
// matrix, and an embedding that serves as one, in Q6_K or better.
std::vector<Scheme> schemes() {
  const WeightType f16(DType::kF16);
  const WeightType q6_k(DType::kQ6_K);
  const WeightType q8_0(DType::kQ8_0);
  return {{"as stored", std::nullopt, std::nullopt, std::nullopt},
          {"F16 or BF16", f16, f16, f16},
          {"INT8, a scale a row", codes(CodeKind::kInt8, kWholeRow), f16, f16},
          {"INT8, groups of 128", codes(CodeKind::kInt8, 128), f16, f16},
          {"INT4, a scale a row", codes(CodeKind::kInt4, kWholeRow), f16, f16},
          {"INT4, groups of 128", codes(CodeKind::kInt4, 128), f16, f16},
          {"INT4, groups of 64", codes(CodeKind::kInt4, 64), f16, f16},
          {"INT4, groups of 32", codes(CodeKind::kInt4, 32), f16, f16},
          {"INT4, groups of 128, zero points", codes(CodeKind::kInt4, 128, true), f16, f16},
          {"GGUF Q8_0", q8_0, q8_0, q8_0},
          {"GGUF Q6_K", q6_k, q6_k, q6_k},
          {"GGUF Q4_K", WeightType(DType::kQ4_K), WeightType(DType::kQ4_K), q6_k},
          {"GGUF Q4_0", WeightType(DType::kQ4_0), WeightType(DType::kQ4_0), q6_k}};
}

int code_bits(CodeKind kind) { return kind == CodeKind::kInt4 ? 4 : 8; }

// What rows of so many columns are stored as: blocks that do not divide them give way to those of Q8_0, and these to F16.
WeightType fitting(const WeightType& type, int64_t columns) {
  if (type.codes != CodeKind::kNone || columns % dtype_info(type.dtype).block_elements == 0) return type;
  return columns % dtype_info(DType::kQ8_0).block_elements == 0 ? DType::kQ8_0 : DType::kF16;
}

int64_t stored_bytes(const WeightType& type, int64_t rows, int64_t columns) {
  if (type.codes == CodeKind::kNone) return rows * row_bytes(type.dtype, columns);
  const int64_t groups = code_groups(type, columns);
  const int64_t bits = code_bits(type.codes) * (columns + (type.zeros ? groups : 0));
  return rows * ((bits + 7) / 8 + groups * row_bytes(type.dtype, 1));
}

void add_once(std::vector<WeightType>& types, const WeightType& type) {
  if (std::find(types.begin(), types.end(), type) == types.end()) types.push_back(type);
}

// One row of the table, without what fits beside it.
class Count {
 public:
  explicit Count(const ModelHeaders& model) : model_(model) {}

  WhatIf::Weights of(const Scheme& scheme, int64_t context) const {
    WhatIf::Weights weights;
    weights.name = scheme.name;
    int64_t values = 0;
    LinearReaders readers;
    std::string embedding;
    std::string head;
    for (const TensorRef& tensor : model_.checkpoint->tensors()) {
      if (tensor.rank < 2) {
        weights.file_bytes += tensor.bytes;
        weights.packed_bytes += tensor.columns() * static_cast<int64_t>(sizeof(float));
        continue;
      }
      const bool is_embedding = tensor.name == "token_embd.weight";
      const bool is_head = model_.config.tied_embeddings ? is_embedding : tensor.name == "output.weight";
      const std::optional<WeightType>& wanted = is_head ? scheme.head : is_embedding ? scheme.embedding : scheme.layers;
      const WeightType type = wanted.has_value() ? fitting(*wanted, tensor.columns()) : tensor.type();
      const std::string name = wanted.has_value() ? std::string(dtype_info(type.dtype).name) : tensor.type_name();
      const int64_t bytes = wanted.has_value() ? stored_bytes(type, tensor.rows(), tensor.columns()) : tensor.bytes;
      weights.file_bytes += bytes;
      if (is_head || !is_embedding)
        weights.packed_bytes += model_.sizes->packed_bytes(type, tensor.rows(), tensor.columns());
      if (is_embedding) embedding = name;
      if (is_head) {
        head = name;
        readers.head = {type};
      } else if (!is_embedding) {
        weights.layer_bytes += bytes;
        values += tensor.rows() * tensor.columns();
        for (auto* types : {&readers.qkv, &readers.o, &readers.gate_up, &readers.down}) add_once(*types, type);
      }
    }
    weights.bits = 8.0 * static_cast<double>(weights.layer_bytes) / static_cast<double>(std::max<int64_t>(values, 1));
    weights.tables = embedding == head || model_.config.tied_embeddings ? head : embedding + ", " + head;
    const WorkspaceLimits limits = {.max_rows = step_rows(context), .max_context = context};
    weights.other_bytes = step_bytes(model_, readers, limits, kScoreRows) + tokenizer_bytes(model_.config.vocab_size);
    return weights;
  }

 private:
  const ModelHeaders& model_;
};

WhatIf::Kv kv_of(const ModelConfig& config, const DeviceSizes& sizes, std::string name, int64_t context) {
  WhatIf::Kv kv;
  kv.name = std::move(name);
  for (const KvGroup& group : config.kv_groups) {
    const int64_t page = KvStore::page_bytes(config, group, sizes);
    kv.bytes_per_token += page / kPageTokens;
    kv.bytes_per_sequence += page * pages_per_sequence(group, context);
  }
  return kv;
}

}  // namespace

Result<WhatIf> what_if(const ModelHeaders& model) {
  const ModelConfig& config = model.config;
  const ModelOptions& options = model.options;
  WhatIf result;
  result.context = options.context > 0 ? options.context : std::min(kDefaultContext, config.context_length);
  result.available_bytes = available_memory_bytes();
  for (const TensorRef& tensor : model.checkpoint->tensors()) {
    if (tensor.rank < 2) continue;
    const bool table = tensor.name == "token_embd.weight" || tensor.name == "output.weight";
    (table ? result.table_weights : result.layer_weights) += tensor.rows() * tensor.columns();
  }
  for (const auto& [name, dtype] : {std::pair("bf16 KV", KvDtype::kBf16), std::pair("int8 KV", KvDtype::kInt8)}) {
    ModelOptions other = options;
    other.kv_dtype = dtype;
    QUIRE_ASSIGN_OR_RETURN(const auto sizes, make_device_sizes(other));
    result.kv.push_back(kv_of(config, *sizes, name, result.context));
  }
  const Count count(model);
  for (const Scheme& scheme : schemes()) {
    WhatIf::Weights weights = count.of(scheme, result.context);
    const int64_t left = result.available_bytes - weights.packed_bytes - weights.other_bytes;
    weights.fits = left >= 0;
    for (const WhatIf::Kv& kv : result.kv)
      weights.sequences.push_back(std::max<int64_t>(left, 0) / std::max<int64_t>(kv.bytes_per_sequence, 1));
    result.weights.push_back(std::move(weights));
  }
  return result;
}

}  // namespace quire
