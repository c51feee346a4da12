// IQ4_NL: 32 weights in 18 bytes, w = d * table[n], n 4 bits indexing a fixed non-linear table.
// Source: ggml's block layouts (ggml-common.h, ggml-quants.c); the scalar decode here is the reference for kernels.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quire {

struct BlockIQ4_NL {
  uint8_t d[2];    // f16
  uint8_t qs[16];  // nibbles as in Q4_0
};
static_assert(sizeof(BlockIQ4_NL) == 18);

inline constexpr int8_t kIQ4NLValues[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

void decode_iq4_nl(const std::byte* blocks, int64_t n_blocks, float* out);

}  // namespace quire
