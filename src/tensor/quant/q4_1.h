// Q4_1: 32 weights in 20 bytes, w = d * n + m, n unsigned 4 bits.
// Source: ggml's block layouts (ggml-common.h, ggml-quants.c); the scalar decode here is the reference for kernels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/block_grid.h"

namespace quire {

struct BlockQ4_1 {
  uint8_t d[2];    // f16
  uint8_t m[2];    // f16
  uint8_t qs[16];  // nibbles as in Q4_0
};
static_assert(sizeof(BlockQ4_1) == 20);

void decode_q4_1(const std::byte* blocks, int64_t n_blocks, float* out);

// Choosing scales and codes apart (tensor/block_grid.h).
void fit_q4_1(const float* values, const float* importance, std::byte* block);
void params_q4_1(const std::byte* block, GroupParams* out);
void put_q4_1(const uint8_t* codes, std::byte* block);

}  // namespace quire
