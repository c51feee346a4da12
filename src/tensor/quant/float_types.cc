#include "tensor/quant/float_types.h"

#include <cstring>

#include "tensor/half.h"

namespace quire {

void decode_f32(const std::byte* blocks, int64_t n_blocks, float* out) {
  std::memcpy(out, blocks, static_cast<size_t>(n_blocks) * sizeof(float));
}
void decode_f16(const std::byte* blocks, int64_t n_blocks, float* out) {
  for (int64_t i = 0; i < n_blocks; ++i) out[i] = load_f16(blocks + 2 * i);
}
void decode_bf16(const std::byte* blocks, int64_t n_blocks, float* out) {
  for (int64_t i = 0; i < n_blocks; ++i) out[i] = bf16_to_f32(load_u16(blocks + 2 * i));
}

void encode_f32(const float* values, int64_t n_blocks, std::byte* blocks) {
  std::memcpy(blocks, values, static_cast<size_t>(n_blocks) * sizeof(float));
}
void encode_f16(const float* values, int64_t n_blocks, std::byte* blocks) {
  for (int64_t i = 0; i < n_blocks; ++i) store_u16(blocks + 2 * i, f32_to_f16(values[i]));
}
void encode_bf16(const float* values, int64_t n_blocks, std::byte* blocks) {
  for (int64_t i = 0; i < n_blocks; ++i) store_u16(blocks + 2 * i, f32_to_bf16(values[i]));
}

}  // namespace quire
