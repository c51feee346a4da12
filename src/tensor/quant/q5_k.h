// Q5_K: 256 weights in 176 bytes, w = d * scale * n - dmin * min, n 5 bits, scale and min 6 bits per 32 weights.
// Source: ggml's block layouts (ggml-common.h, ggml-quants.c); the scalar decode here is the reference for kernels.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quire {

struct BlockQ5_K {
  uint8_t d[2];        // f16
  uint8_t dmin[2];     // f16
  uint8_t scales[12];  // packed as in Q4_K
  uint8_t qh[32];      // bit b of byte j is bit 4 of weight 32 * b + j
  uint8_t qs[128];     // low four bits, placed as in Q4_K
};
static_assert(sizeof(BlockQ5_K) == 176);

void decode_q5_k(const std::byte* blocks, int64_t n_blocks, float* out);

}  // namespace quire
