#include "tensor/quant/q6_k.h"

#include "tensor/half.h"

namespace quire {

void decode_q6_k(const std::byte* blocks, int64_t n_blocks, float* out) {
  const auto* block = reinterpret_cast<const BlockQ6_K*>(blocks);
  for (int64_t b = 0; b < n_blocks; ++b, ++block, out += 256) {
    const float d = load_f16(block->d);
    for (int group = 0; group < 16; ++group) {
      const float scale = d * static_cast<float>(block->scales[group]);
      const int half = group / 8;
      const int first = 16 * (group % 8);  // of this group within the half
      const uint8_t* ql = block->ql + 64 * half + first % 64;
      const uint8_t* qh = block->qh + 32 * half + first % 32;
      for (int i = 0; i < 16; ++i) {
        const int low = ql[i] >> 4 * (first / 64) & 15;
        const int high = qh[i] >> 2 * (first / 32) & 3;
        out[16 * group + i] = scale * static_cast<float>((low | high << 4) - 32);
      }
    }
  }
}

}  // namespace quire
