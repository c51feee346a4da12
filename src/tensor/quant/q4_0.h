// Q4_0: 32 weights in 18 bytes, w = d * (n - 8), n unsigned 4 bits.
// Source: ggml's block layouts (ggml-common.h, ggml-quants.c); the scalar decode here is the reference for kernels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/block_grid.h"

namespace quire {

struct BlockQ4_0 {
  uint8_t d[2];    // f16
  uint8_t qs[16];  // byte i: weight i in the low nibble, weight i + 16 in the high one
};
static_assert(sizeof(BlockQ4_0) == 18);

void decode_q4_0(const std::byte* blocks, int64_t n_blocks, float* out);
void encode_q4_0(const float* values, int64_t n_blocks, std::byte* blocks);

// Choosing scales and codes apart (tensor/block_grid.h).
void fit_q4_0(const float* values, const float* importance, std::byte* block);
void params_q4_0(const std::byte* block, GroupParams* out);
void put_q4_0(const uint8_t* codes, std::byte* block);

}  // namespace quire
