// Q5_0: 32 weights in 22 bytes, w = d * (n - 16), n unsigned 5 bits.
// Source: ggml's block layouts (ggml-common.h, ggml-quants.c); the scalar decode here is the reference for kernels.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quire {

struct BlockQ5_0 {
  uint8_t d[2];    // f16
  uint8_t qh[4];   // u32: bit i is bit 4 of weight i
  uint8_t qs[16];  // low four bits, nibbles as in Q4_0
};
static_assert(sizeof(BlockQ5_0) == 22);

void decode_q5_0(const std::byte* blocks, int64_t n_blocks, float* out);

}  // namespace quire
