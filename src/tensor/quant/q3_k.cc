#include "tensor/quant/q3_k.h"

#include "tensor/half.h"

namespace quire {

void unpack_scales_q3_k(const uint8_t packed[12], int8_t scales[16]) {
  for (int j = 0; j < 16; ++j) {
    const int low = j < 8 ? packed[j] & 15 : packed[j - 8] >> 4;
    const int high = packed[8 + j % 4] >> 2 * (j / 4) & 3;
    scales[j] = static_cast<int8_t>((low | high << 4) - 32);
  }
}

void decode_q3_k(const std::byte* blocks, int64_t n_blocks, float* out) {
  const auto* block = reinterpret_cast<const BlockQ3_K*>(blocks);
  for (int64_t b = 0; b < n_blocks; ++b, ++block, out += 256) {
    const float d = load_f16(block->d);
    int8_t scales[16];
    unpack_scales_q3_k(block->scales, scales);
    for (int group = 0; group < 16; ++group) {
      const float scale = d * static_cast<float>(scales[group]);
      const uint8_t* qs = block->qs + 32 * (group / 8) + 16 * (group % 2);
      const uint8_t* hmask = block->hmask + 16 * (group % 2);
      const int shift = 2 * (group % 8 / 2);
      for (int i = 0; i < 16; ++i) {
        const int q = (qs[i] >> shift & 3) | (hmask[i] >> group / 2 & 1) << 2;
        out[16 * group + i] = scale * static_cast<float>(q - 4);
      }
    }
  }
}

}  // namespace quire
