// Any quantization settings and any tensors of a module: an error, or a matrix that is the same decoded and as codes.
//
// Input: config.json, "---", tensors by the last part of their names (fuzz/documents.h).
#include <string>
#include <vector>

#include "formats/hf_quantization.h"
#include "formats/quantized_linear.h"
#include "fuzz/documents.h"

namespace quire {
namespace {

constexpr const char* kModule = "model.layers.0.self_attn.q_proj";

// A weight from what read() gives, as a kernel computes it.
float weight_of(const QuantizedLinear& linear, const CodeRows& row, int64_t stored_column) {
  const WeightType& type = linear.type();
  const int64_t group = stored_column / type.group;
  const uint8_t code = row.codes[stored_column];
  if (type.codes == CodeKind::kFp8) return row.scales[group] * e4m3_to_f32(code);
  const int middle = type.codes == CodeKind::kInt4 ? 8 : 128;
  return row.scales[group] * static_cast<float>(code - (type.zeros ? row.zeros[group] : middle));
}

void compare(const QuantizedLinear& linear) {
  const int64_t k = linear.columns();
  const int64_t groups = code_groups(linear.type(), k);
  std::vector<uint8_t> codes(static_cast<size_t>(k)), zeros(static_cast<size_t>(groups));
  std::vector<float> scales(static_cast<size_t>(groups)), decoded(static_cast<size_t>(k));
  const CodeRows row = {
      .codes = codes.data(), .code_stride = k, .scales = scales.data(), .zeros = zeros.data(), .groups = groups};
  for (int64_t r = 0; r < linear.rows(); ++r) {
    linear.read(r, 1, row);
    linear.decode_f32(r, decoded.data());
    for (int64_t i = 0; i < k; ++i) {
      const int64_t column = linear.order().empty() ? i : linear.order()[static_cast<size_t>(i)];
      const float expected = weight_of(linear, row, i), got = decoded[static_cast<size_t>(column)];
      fuzz_require(got == expected || (got != got && expected != expected), linear.name() + ": decoded as its codes");
    }
  }
}

}  // namespace
}  // namespace quire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const auto parts = quire::split_documents({reinterpret_cast<const char*>(bytes), size}, 2);
  const auto settings = quire::HfQuantization::read({.directory = "fuzz", .config = &parts[0]});
  if (!settings.ok() || !*settings) return 0;
  const auto scheme = (*settings)->scheme_of(quire::kModule);
  if (!scheme.ok() || !*scheme) return 0;
  const quire::DescribedTensors tensors(parts[1]);
  const std::vector<quire::SafetensorsEntry> entries = tensors.entries();
  quire::QuantizedParts named;
  for (const quire::SafetensorsEntry& entry : entries) {
    if (quire::is_quantized_part(entry.name, entry.dtype)) named.emplace(entry.name, &entry);
  }
  const auto linear = quire::QuantizedLinear::create(**scheme, named, "fuzz");
  if (linear.ok()) quire::compare(**linear);
  return 0;
}
