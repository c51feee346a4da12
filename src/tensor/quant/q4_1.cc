#include "tensor/quant/q4_1.h"

#include <cstring>

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

void fit_q4_1(const float* values, const float* importance, std::byte* block) {
  const GroupParams found = search_affine(values, importance, 32, 15, false);
  BlockQ4_1 out = {};
  store_u16(out.d, f32_to_f16(found.scale));
  store_u16(out.m, f32_to_f16(found.offset));
  std::memcpy(block, &out, sizeof out);
}

void params_q4_1(const std::byte* block, GroupParams* out) {
  const auto* in = reinterpret_cast<const BlockQ4_1*>(block);
  *out = {.scale = load_f16(in->d), .offset = load_f16(in->m)};
}

void put_q4_1(const uint8_t* codes, std::byte* block) {
  uint8_t* qs = reinterpret_cast<BlockQ4_1*>(block)->qs;
  for (int i = 0; i < 16; ++i) qs[i] = static_cast<uint8_t>(codes[i] | codes[i + 16] << 4);
}

}  // namespace quire
