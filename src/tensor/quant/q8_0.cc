#include "tensor/quant/q8_0.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tensor/half.h"

namespace quire {

void decode_q8_0(const std::byte* blocks, int64_t n_blocks, float* out) {
  const auto* block = reinterpret_cast<const BlockQ8_0*>(blocks);
  for (int64_t b = 0; b < n_blocks; ++b, ++block, out += 32) {
    const float d = load_f16(block->d);
    for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(block->qs[i]);
  }
}

// Rounds half away from zero. Values must be finite.
void encode_q8_0(const float* values, int64_t n_blocks, std::byte* blocks) {
  auto* block = reinterpret_cast<BlockQ8_0*>(blocks);
  for (int64_t b = 0; b < n_blocks; ++b, ++block, values += 32) {
    float largest = 0.0f;
    for (int i = 0; i < 32; ++i) largest = std::max(largest, std::fabs(values[i]));
    const float d = largest / 127.0f;
    const float inverse = std::fabs(d) >= 0x1p-126f ? 1.0f / d : 0.0f;  // a subnormal has no finite inverse
    store_u16(block->d, f32_to_f16(d));
    for (int i = 0; i < 32; ++i) {
      block->qs[i] = static_cast<int8_t>(std::clamp(std::round(values[i] * inverse), -127.0f, 127.0f));
    }
  }
}

// Codes here count from 128.
void fit_q8_0(const float* values, const float* /*importance*/, std::byte* block) {
  float largest = 0;
  for (int i = 0; i < 32; ++i) largest = std::max(largest, std::fabs(values[i]));
  BlockQ8_0 out = {};
  store_u16(out.d, f32_to_f16(largest / 127));
  std::memcpy(block, &out, sizeof out);
}

void params_q8_0(const std::byte* block, GroupParams* out) {
  const float d = load_f16(reinterpret_cast<const BlockQ8_0*>(block)->d);
  *out = {.scale = d, .offset = -128 * d};
}

void put_q8_0(const uint8_t* codes, std::byte* block) {
  int8_t* qs = reinterpret_cast<BlockQ8_0*>(block)->qs;
  for (int i = 0; i < 32; ++i) qs[i] = static_cast<int8_t>(codes[i] - 128);
}

}  // namespace quire
