#include "quantize/layer_parts.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "model/layer_members.h"

namespace quire {
namespace {

constexpr std::array<LayerTensor, kLayerLinears.size()> kTensors = {
    LayerTensor::kQ,    LayerTensor::kK,  LayerTensor::kV,   LayerTensor::kO,
    LayerTensor::kGate, LayerTensor::kUp, LayerTensor::kDown};

LayerTensor tensor_of(LayerLinear linear) { return kTensors[static_cast<size_t>(linear)]; }

}  // namespace

LayerInput input_of(LayerLinear linear) { return layer_tensor(tensor_of(linear)).input; }

std::string tensor_name(size_t layer, LayerLinear linear) { return tensor_name(layer, tensor_of(linear)); }

WeightType weight_type(const GridSpec& spec, int64_t k, bool ordered) {
  if (spec.blocks != nullptr) return spec.blocks->dtype;
  WeightType type(DType::kF16);
  type.codes = spec.bits == 8 ? CodeKind::kInt8 : CodeKind::kInt4;
  type.zeros = !spec.symmetric;
  type.group = spec.group == 0 || spec.group >= k ? kWholeRow : static_cast<int32_t>(spec.group);
  type.ordered = ordered;
  return type;
}

LayerParts::LayerParts(const Checkpoint& checkpoint, size_t layer, Device& device) : device_(device) {
  for (const LayerLinear linear : kLayerLinears) {
    linears_[index(linear)].tensor = checkpoint.find(tensor_name(layer, linear));
    QUIRE_CHECK(linears_[index(linear)].tensor != nullptr);
  }
  for (const LayerTensorRow& row : layer_tensors()) {
    if (row.kind == TensorKind::kLinear) continue;
    const TensorRef* tensor = checkpoint.find(tensor_name(layer, row.id));
    if (tensor == nullptr) continue;
    std::vector<float> values(static_cast<size_t>(tensor->rows() * tensor->columns()));
    tensor->decode_f32(0, tensor->rows(), values.data());
    vectors_.emplace(row.name, std::move(values));
  }
}

std::vector<float>& LayerParts::values(LayerLinear linear) {
  Linear& part = linears_[index(linear)];
  if (!part.values.empty()) return part.values;
  const int64_t k = part.tensor->columns();
  part.values.resize(static_cast<size_t>(part.tensor->rows() * k));
  device_.parallel(part.tensor->rows(), [&](int64_t begin, int64_t end) {
    part.tensor->decode_f32(begin, end - begin, part.values.data() + begin * k);
  });
  return part.values;
}

std::vector<float>* LayerParts::vector(std::string_view name) {
  const auto found = vectors_.find(name);
  return found == vectors_.end() ? nullptr : &found->second;
}

Status LayerParts::pack(Linear& linear, const LinearSource& source) {
  QUIRE_ASSIGN_OR_RETURN(linear.memory, Buffer::allocate(device_.sizes().packed_bytes(source.type, source.n, source.k),
                                                         "the weights of a layer"));
  linear.packed = device_.pack(source, linear.memory.data());
  return {};
}

Status LayerParts::use_stored(LayerLinear linear) {
  Linear& part = linears_[index(linear)];
  return pack(part, linear_source(*part.tensor));
}

Status LayerParts::use(LayerLinear linear, const GridSpec& spec, const QuantizedRows& rows) {
  Linear& part = linears_[index(linear)];
  const int64_t k = part.tensor->columns();
  LinearSource source;
  source.type = weight_type(spec, k, !rows.codes.group_of.empty());
  source.n = part.tensor->rows();
  source.k = k;
  if (spec.blocks != nullptr) {
    source.row = [&rows, stride = row_bytes(spec.blocks->dtype, k)](int64_t row) {
      return rows.blocks.data() + row * stride;
    };
    return pack(part, source);
  }
  const QuantizedMatrix& codes = rows.codes;
  if (!codes.group_of.empty()) {
    part.order.resize(static_cast<size_t>(k));
    std::iota(part.order.begin(), part.order.end(), 0);
    std::ranges::stable_sort(part.order, {}, [&](int32_t i) { return codes.group_of[static_cast<size_t>(i)]; });
    source.order = part.order.data();
  }
  source.codes = [&](int64_t first, int64_t count, const CodeRows& out) {
    for (int64_t r = 0; r < count; ++r) {
      const uint8_t* from = codes.codes.data() + (first + r) * k;
      uint8_t* to = out.codes + r * out.code_stride;
      for (int64_t i = 0; i < k; ++i) to[i] = from[part.order.empty() ? i : part.order[static_cast<size_t>(i)]];
      const auto at = static_cast<size_t>((first + r) * out.groups);
      std::copy_n(codes.scales.data() + at, out.groups, out.scales + r * out.groups);
      if (source.type.zeros) std::copy_n(codes.zeros.data() + at, out.groups, out.zeros + r * out.groups);
    }
  };
  return pack(part, source);
}

const LayerWeights& LayerParts::weights() {
  for (const LayerLinear linear : kLayerLinears)
    weights_.*linear_member(tensor_of(linear)) = linears_[index(linear)].packed;
  for (const LayerTensorRow& row : layer_tensors()) {
    if (row.kind == TensorKind::kLinear) continue;
    const std::vector<float>* values = vector(row.name);
    weights_.*vector_member(row.id) = values == nullptr ? nullptr : values->data();
  }
  return weights_;
}

}  // namespace quire
