// Element types of tensors as files store them, as rows of one table: name, block geometry, scalar encode and
// decode. A quantization format is one file in tensor/quant/ plus one row here; nothing else switches on types
// except the kernels that speed some of them up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace quire {

enum class DType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIQ4_NL,
  kIQ4_XS,
  kMXFP4,
};
inline constexpr int kDTypeCount = 16;

struct DTypeInfo {
  DType dtype;
  std::string_view name;  // as GGUF tools spell it: "Q4_K"
  int ggml_type;          // type id inside a GGUF file
  int block_elements;     // elements per block, along the contiguous dimension
  int block_bytes;
  // Decodes `n_blocks` consecutive blocks into n_blocks * block_elements floats. Total: any bytes are valid input.
  void (*decode)(const std::byte* blocks, int64_t n_blocks, float* out);
  // The inverse, rounding as the format's reference quantizer does; null for formats that quire only reads.
  void (*encode)(const float* values, int64_t n_blocks, std::byte* blocks);
};

const DTypeInfo& dtype_info(DType dtype);
std::span<const DTypeInfo> all_dtypes();
const DTypeInfo* dtype_from_ggml(uint32_t ggml_type);  // null: unknown or not supported
const char* ggml_type_name(uint32_t ggml_type);        // also names types quire cannot read; "type 77" is null

// Bytes of one row of `columns` elements; columns must be a multiple of the block size.
inline int64_t row_bytes(DType dtype, int64_t columns) {
  const DTypeInfo& info = dtype_info(dtype);
  return columns / info.block_elements * info.block_bytes;
}

}  // namespace quire
