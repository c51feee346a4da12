// Q6_K: 256 weights in 210 bytes, w = d * scale * (q - 32), q 6 bits, scale signed 8 bits per 16 weights.
// Source: ggml's block layouts (ggml-common.h, ggml-quants.c); the scalar decode here is the reference for kernels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/block_grid.h"

namespace quire {

struct BlockQ6_K {
  uint8_t ql[128];  // of each half: byte j holds the low four bits of weights j and j + 64
  uint8_t qh[64];   // of each half: byte j holds the high two bits of weights j, j + 32, j + 64, j + 96
  int8_t scales[16];
  uint8_t d[2];  // f16
};
static_assert(sizeof(BlockQ6_K) == 210);

void decode_q6_k(const std::byte* blocks, int64_t n_blocks, float* out);
// Of the scales of each 16 weights, the one whose squared errors, weighted by the squares of the weights, are smallest
// among 19 near the largest weight's. Values must be finite.
void encode_q6_k(const float* values, int64_t n_blocks, std::byte* blocks);

// Choosing scales and codes apart (tensor/block_grid.h).
void fit_q6_k(const float* values, const float* importance, std::byte* block);
void params_q6_k(const std::byte* block, GroupParams* out);
void put_q6_k(const uint8_t* codes, std::byte* block);

}  // namespace quire
