// The unquantized element types F32, F16 and BF16 as formats with blocks of one weight.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quire {

void decode_f32(const std::byte* blocks, int64_t n_blocks, float* out);
void encode_f32(const float* values, int64_t n_blocks, std::byte* blocks);
void decode_f16(const std::byte* blocks, int64_t n_blocks, float* out);
void encode_f16(const float* values, int64_t n_blocks, std::byte* blocks);
void decode_bf16(const std::byte* blocks, int64_t n_blocks, float* out);
void encode_bf16(const float* values, int64_t n_blocks, std::byte* blocks);

}  // namespace quire
