#include "tensor/quant/q4_k.h"

#include "tensor/half.h"

namespace quire {

void unpack_scales_q4_k(const uint8_t packed[12], uint8_t scales[8], uint8_t mins[8]) {
  for (int j = 0; j < 4; ++j) {
    scales[j] = packed[j] & 63;
    mins[j] = packed[j + 4] & 63;
    scales[j + 4] = static_cast<uint8_t>((packed[j + 8] & 15) | packed[j] >> 6 << 4);
    mins[j + 4] = static_cast<uint8_t>(packed[j + 8] >> 4 | packed[j + 4] >> 6 << 4);
  }
}

void decode_q4_k(const std::byte* blocks, int64_t n_blocks, float* out) {
  const auto* block = reinterpret_cast<const BlockQ4_K*>(blocks);
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
      for (int i = 0; i < 32; ++i) out[32 * group + i] = scale * static_cast<float>(qs[i] >> shift & 15) - min;
    }
  }
}

}  // namespace quire
