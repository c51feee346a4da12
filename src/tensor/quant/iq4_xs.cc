#include "tensor/quant/iq4_xs.h"

#include "tensor/half.h"
#include "tensor/quant/iq4_nl.h"

namespace quire {

void decode_iq4_xs(const std::byte* blocks, int64_t n_blocks, float* out) {
  const auto* block = reinterpret_cast<const BlockIQ4_XS*>(blocks);
  for (int64_t b = 0; b < n_blocks; ++b, ++block, out += 256) {
    const float d = load_f16(block->d);
    const int scales_h = load_u16(block->scales_h);
    for (int group = 0; group < 8; ++group) {
      const int low = block->scales_l[group / 2] >> 4 * (group % 2) & 15;
      const int high = scales_h >> 2 * group & 3;
      const float scale = d * static_cast<float>((low | high << 4) - 32);
      const uint8_t* qs = block->qs + 16 * group;
      for (int i = 0; i < 16; ++i) {
        out[32 * group + i] = scale * static_cast<float>(kIQ4NLValues[qs[i] & 15]);
        out[32 * group + i + 16] = scale * static_cast<float>(kIQ4NLValues[qs[i] >> 4]);
      }
    }
  }
}

}  // namespace quire
