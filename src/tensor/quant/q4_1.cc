#include "tensor/quant/q4_1.h"

#include "tensor/half.h"

namespace quire {

void decode_q4_1(const std::byte* blocks, int64_t n_blocks, float* out) {
  const auto* block = reinterpret_cast<const BlockQ4_1*>(blocks);
  for (int64_t b = 0; b < n_blocks; ++b, ++block, out += 32) {
    const float d = load_f16(block->d);
    const float m = load_f16(block->m);
    for (int i = 0; i < 16; ++i) {
      out[i] = d * static_cast<float>(block->qs[i] & 15) + m;
      out[i + 16] = d * static_cast<float>(block->qs[i] >> 4) + m;
    }
  }
}

}  // namespace quire
