#include "tensor/quant/mxfp4.h"

#include <bit>

namespace quire {

float mxfp4_half_scale(uint8_t e) {
  // The two smallest results are subnormal in f32.
  return std::bit_cast<float>(e < 2 ? 0x00200000u << e : static_cast<uint32_t>(e - 1) << 23);
}

void decode_mxfp4(const std::byte* blocks, int64_t n_blocks, float* out) {
  const auto* block = reinterpret_cast<const BlockMXFP4*>(blocks);
  for (int64_t b = 0; b < n_blocks; ++b, ++block, out += 32) {
    const float d = mxfp4_half_scale(block->e);
    for (int i = 0; i < 16; ++i) {
      out[i] = d * static_cast<float>(kMXFP4DoubledValues[block->qs[i] & 15]);
      out[i + 16] = d * static_cast<float>(kMXFP4DoubledValues[block->qs[i] >> 4]);
    }
  }
}

}  // namespace quire
