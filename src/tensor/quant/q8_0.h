// Q8_0: 32 weights in 34 bytes, w = d * q, q signed 8 bits.
// Source: ggml's block layouts (ggml-common.h, ggml-quants.c); the scalar decode here is the reference for kernels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/block_grid.h"

namespace quire {

struct BlockQ8_0 {
  uint8_t d[2];  // f16
  int8_t qs[32];
};
static_assert(sizeof(BlockQ8_0) == 34);

void decode_q8_0(const std::byte* blocks, int64_t n_blocks, float* out);
void encode_q8_0(const float* values, int64_t n_blocks, std::byte* blocks);

// Choosing scales and codes apart (tensor/block_grid.h).
void fit_q8_0(const float* values, const float* importance, std::byte* block);
void params_q8_0(const std::byte* block, GroupParams* out);
void put_q8_0(const uint8_t* codes, std::byte* block);

}  // namespace quire
