// IQ4_XS: 256 weights in 136 bytes, w = d * (scale - 32) * table[n], the table of IQ4_NL, scale 6 bits per 32 weights.
// Source: ggml's block layouts (ggml-common.h, ggml-quants.c); the scalar decode here is the reference for kernels.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quire {

struct BlockIQ4_XS {
  uint8_t d[2];         // f16
  uint8_t scales_h[2];  // u16: bits 2k and 2k + 1 are the high bits of scale k
  uint8_t scales_l[4];  // low four bits of scale k in nibble k
  uint8_t qs[128];      // 16 bytes per 32 weights, nibbles as in Q4_0
};
static_assert(sizeof(BlockIQ4_XS) == 136);

void decode_iq4_xs(const std::byte* blocks, int64_t n_blocks, float* out);

}  // namespace quire
