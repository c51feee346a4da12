#include "tensor/quant/q5_k.h"

#include "tensor/half.h"
#include "tensor/quant/q4_k.h"

namespace quire {

void decode_q5_k(const std::byte* blocks, int64_t n_blocks, float* out) {
  const auto* block = reinterpret_cast<const BlockQ5_K*>(blocks);
  for (int64_t b = 0; b < n_blocks; ++b, ++block, out += 256) {
    const float d = load_f16(block->d);
    const float dmin = load_f16(block->dmin);
    uint8_t scales[8], mins[8];
    unpack_scales_q4_k(block->scales, scales, mins);
    for (int group = 0; group < 8; ++group) {
      const float scale = d * static_cast<float>(scales[group]);
      const float min = dmin * static_cast<float>(mins[group]);
      const uint8_t* qs = block->qs + 32 * (group / 2);
      const int shift = 4 * (group % 2);
      for (int i = 0; i < 32; ++i) {
        const int n = (qs[i] >> shift & 15) | (block->qh[i] >> group & 1) << 4;
        out[32 * group + i] = scale * static_cast<float>(n) - min;
      }
    }
  }
}

}  // namespace quire
