// Q8_0: 32 weights in 34 bytes, w = d * q, q signed 8 bits.
// Source: ggml's block layouts (ggml-common.h, ggml-quants.c); the scalar decode here is the reference for kernels.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quire {

struct BlockQ8_0 {
  uint8_t d[2];  // f16
  int8_t qs[32];
};
static_assert(sizeof(BlockQ8_0) == 34);

void decode_q8_0(const std::byte* blocks, int64_t n_blocks, float* out);
void encode_q8_0(const float* values, int64_t n_blocks, std::byte* blocks);

}  // namespace quire
