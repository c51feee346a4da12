// Codes, scales and zero points of a linear as the tensors of GPTQ's second version, AWQ's gemm layout and
// compressed-tensors' pack-quantized. The inverse of formats/quantized_linear.h; layouts and their sources:
// docs/quantization.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "formats/checkpoint_writer.h"

namespace quire {

struct PackedPart {
  std::string name;   // the last part of the tensor's name: "qweight"
  std::string dtype;  // as safetensors names it
  std::vector<int64_t> shape;
};

// The tensors that a linear of n x k becomes. Fails, without naming the linear, where the format cannot hold it.
Result<std::vector<PackedPart>> packed_parts(const CheckpointTarget& target, int64_t n, int64_t k);

// Fails, without naming the linear, where sizes, codes or zero points contradict the target or F16 cannot hold a scale.
Status check_matrix(const CheckpointTarget& target, const QuantizedMatrix& matrix);

// The bytes of one of packed_parts.
std::vector<std::byte> pack_part(const CheckpointTarget& target, std::string_view part, const QuantizedMatrix& matrix);

}  // namespace quire
