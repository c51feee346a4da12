// Q2_K: 256 weights in 84 bytes, w = d * scale * q - dmin * min, q 2 bits, scale and min 4 bits per 16 weights.
// Source: ggml's block layouts (ggml-common.h, ggml-quants.c); the scalar decode here is the reference for kernels.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quire {

struct BlockQ2_K {
  uint8_t scales[16];  // of group i: scale in the low nibble, min in the high one
  uint8_t qs[64];      // of each half: byte j holds weights j, j + 32, j + 64, j + 96, lowest bits first
  uint8_t d[2];        // f16
  uint8_t dmin[2];     // f16
};
static_assert(sizeof(BlockQ2_K) == 84);

void decode_q2_k(const std::byte* blocks, int64_t n_blocks, float* out);

}  // namespace quire
