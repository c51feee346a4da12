// Q4_K: 256 weights in 144 bytes, w = d * scale * n - dmin * min, n 4 bits, scale and min 6 bits per 32 weights.
// Source: ggml's block layouts (ggml-common.h, ggml-quants.c); the scalar decode here is the reference for kernels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/block_grid.h"

namespace quire {

struct BlockQ4_K {
  uint8_t d[2];        // f16
  uint8_t dmin[2];     // f16
  uint8_t scales[12];  // eight pairs of 6-bit scale and min
  uint8_t qs[128];     // 32 bytes per 64 weights: the first 32 in the low nibbles, the others in the high ones
};
static_assert(sizeof(BlockQ4_K) == 144);

// Scale and min of each group of 32 weights; Q5_K packs them in the same way.
void unpack_scales_q4_k(const uint8_t packed[12], uint8_t scales[8], uint8_t mins[8]);
void pack_scales_q4_k(const uint8_t scales[8], const uint8_t mins[8], uint8_t packed[12]);
void decode_q4_k(const std::byte* blocks, int64_t n_blocks, float* out);

// Choosing scales and codes apart (tensor/block_grid.h).
void fit_q4_k(const float* values, const float* importance, std::byte* block);
void params_q4_k(const std::byte* block, GroupParams* out);
void put_q4_k(const uint8_t* codes, std::byte* block);

}  // namespace quire
