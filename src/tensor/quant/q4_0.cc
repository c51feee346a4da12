#include "tensor/quant/q4_0.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tensor/half.h"

namespace quire {

void decode_q4_0(const std::byte* blocks, int64_t n_blocks, float* out) {
  const auto* block = reinterpret_cast<const BlockQ4_0*>(blocks);
  for (int64_t b = 0; b < n_blocks; ++b, ++block, out += 32) {
    const float d = load_f16(block->d);
    for (int i = 0; i < 16; ++i) {
      out[i] = d * static_cast<float>((block->qs[i] & 15) - 8);
      out[i + 16] = d * static_cast<float>((block->qs[i] >> 4) - 8);
    }
  }
}

// The weight of largest magnitude becomes exactly -8, which uses all sixteen codes. Values must be finite.
void encode_q4_0(const float* values, int64_t n_blocks, std::byte* blocks) {
  auto* block = reinterpret_cast<BlockQ4_0*>(blocks);
  for (int64_t b = 0; b < n_blocks; ++b, ++block, values += 32) {
    const float extreme =
        *std::max_element(values, values + 32, [](float x, float y) { return std::fabs(x) < std::fabs(y); });
    const float d = extreme / -8.0f;
    const float inverse = std::fabs(d) >= 0x1p-126f ? 1.0f / d : 0.0f;  // a subnormal has no finite inverse
    const auto code = [&](float x) { return static_cast<uint8_t>(std::clamp(x * inverse + 8.5f, 0.0f, 15.0f)); };
    store_u16(block->d, f32_to_f16(d));
    for (int i = 0; i < 16; ++i) block->qs[i] = static_cast<uint8_t>(code(values[i]) | code(values[i + 16]) << 4);
  }
}

void fit_q4_0(const float* values, const float* importance, std::byte* block) {
  BlockQ4_0 out = {};
  store_u16(out.d, f32_to_f16(search_scale(values, importance, 32, 8)));
  std::memcpy(block, &out, sizeof out);
}

void params_q4_0(const std::byte* block, GroupParams* out) {
  const float d = load_f16(reinterpret_cast<const BlockQ4_0*>(block)->d);
  *out = {.scale = d, .offset = -8 * d};
}

void put_q4_0(const uint8_t* codes, std::byte* block) {
  uint8_t* qs = reinterpret_cast<BlockQ4_0*>(block)->qs;
  for (int i = 0; i < 16; ++i) qs[i] = static_cast<uint8_t>(codes[i] | codes[i + 16] << 4);
}

}  // namespace quire
