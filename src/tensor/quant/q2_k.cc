#include "tensor/quant/q2_k.h"

#include "tensor/half.h"

namespace quire {

void decode_q2_k(const std::byte* blocks, int64_t n_blocks, float* out) {
  const auto* block = reinterpret_cast<const BlockQ2_K*>(blocks);
  for (int64_t b = 0; b < n_blocks; ++b, ++block, out += 256) {
    const float d = load_f16(block->d);
    const float dmin = load_f16(block->dmin);
    for (int group = 0; group < 16; ++group) {
      const float scale = d * static_cast<float>(block->scales[group] & 15);
      const float min = dmin * static_cast<float>(block->scales[group] >> 4);
      const uint8_t* qs = block->qs + 32 * (group / 8) + 16 * (group % 2);
      const int shift = 2 * (group % 8 / 2);
      for (int i = 0; i < 16; ++i) out[16 * group + i] = scale * static_cast<float>(qs[i] >> shift & 3) - min;
    }
  }
}

}  // namespace quire
