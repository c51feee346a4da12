// Q3_K: 256 weights in 110 bytes, w = d * scale * (q - 4), q 3 bits, scale signed 6 bits per 16 weights.
// Source: ggml's block layouts (ggml-common.h, ggml-quants.c); the scalar decode here is the reference for kernels.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quire {

struct BlockQ3_K {
  uint8_t hmask[32];   // bit b of byte j is bit 2 of weight 32 * b + j
  uint8_t qs[64];      // low two bits, placed as in Q2_K
  uint8_t scales[12];  // sixteen 6-bit scales, biased by 32
  uint8_t d[2];        // f16
};
static_assert(sizeof(BlockQ3_K) == 110);

// Scale of each group of 16 weights, in [-32, 31].
void unpack_scales_q3_k(const uint8_t packed[12], int8_t scales[16]);
void decode_q3_k(const std::byte* blocks, int64_t n_blocks, float* out);

}  // namespace quire
