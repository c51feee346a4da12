// Q4_1: 32 weights in 20 bytes, w = d * n + m, n unsigned 4 bits.
// Source: ggml's block layouts (ggml-common.h, ggml-quants.c); the scalar decode here is the reference for kernels.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quire {

struct BlockQ4_1 {
  uint8_t d[2];    // f16
  uint8_t m[2];    // f16
  uint8_t qs[16];  // nibbles as in Q4_0
};
static_assert(sizeof(BlockQ4_1) == 20);

void decode_q4_1(const std::byte* blocks, int64_t n_blocks, float* out);

}  // namespace quire
