// MXFP4: 32 weights in 17 bytes, w = 2^(e - 127) * E2M1 code (OCP Microscaling Formats 1.0).
// Source: ggml's block layouts (ggml-common.h, ggml-quants.c); the scalar decode here is the reference for kernels.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quire {

struct BlockMXFP4 {
  uint8_t e;       // exponent, E8M0; 0 is 2^-127, and 255 is not treated as NaN
  uint8_t qs[16];  // nibbles as in Q4_0
};
static_assert(sizeof(BlockMXFP4) == 17);

// Twice the value of each E2M1 code, so that all are integers; code 8 is +0 like code 0.
inline constexpr int8_t kMXFP4DoubledValues[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// 2^(e - 128): half the scale, which goes with the doubled values.
float mxfp4_half_scale(uint8_t e);
void decode_mxfp4(const std::byte* blocks, int64_t n_blocks, float* out);

}  // namespace quire
