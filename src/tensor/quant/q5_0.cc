#include "tensor/quant/q5_0.h"

#include "tensor/half.h"

namespace quire {

void decode_q5_0(const std::byte* blocks, int64_t n_blocks, float* out) {
  const auto* block = reinterpret_cast<const BlockQ5_0*>(blocks);
  for (int64_t b = 0; b < n_blocks; ++b, ++block, out += 32) {
    const float d = load_f16(block->d);
    const uint32_t high = load_u32(block->qh);
    for (int i = 0; i < 16; ++i) {
      const int low_weight = (block->qs[i] & 15) | static_cast<int>(high >> i & 1) << 4;
      const int high_weight = block->qs[i] >> 4 | static_cast<int>(high >> (i + 16) & 1) << 4;
      out[i] = d * static_cast<float>(low_weight - 16);
      out[i + 16] = d * static_cast<float>(high_weight - 16);
    }
  }
}

}  // namespace quire
