#include "tensor/quant/q4_k.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

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

void pack_scales_q4_k(const uint8_t scales[8], const uint8_t mins[8], uint8_t packed[12]) {
  for (int j = 0; j < 4; ++j) {
    packed[j] = static_cast<uint8_t>(scales[j] | scales[j + 4] >> 4 << 6);
    packed[j + 4] = static_cast<uint8_t>(mins[j] | mins[j + 4] >> 4 << 6);
    packed[j + 8] = static_cast<uint8_t>((scales[j + 4] & 15) | mins[j + 4] << 4);
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

void fit_q4_k(const float* values, const float* importance, std::byte* block) {
  std::array<GroupParams, 8> groups;
  float max_scale = 0;
  float max_min = 0;
  for (size_t g = 0; g < 8; ++g) {
    groups[g] = search_affine(values + 32 * g, importance + 32 * g, 32, 15, true);
    max_scale = std::max(max_scale, groups[g].scale);
    max_min = std::max(max_min, -groups[g].offset);
  }
  BlockQ4_K out = {};
  store_u16(out.d, f32_to_f16(max_scale / 63));
  store_u16(out.dmin, f32_to_f16(max_min / 63));
  const float inverse_d = inverse_of(load_f16(out.d));
  const float inverse_dmin = inverse_of(load_f16(out.dmin));
  uint8_t scales[8], mins[8];
  for (size_t g = 0; g < 8; ++g) {
    scales[g] = static_cast<uint8_t>(std::clamp(std::nearbyint(groups[g].scale * inverse_d), 0.0f, 63.0f));
    mins[g] = static_cast<uint8_t>(std::clamp(std::nearbyint(-groups[g].offset * inverse_dmin), 0.0f, 63.0f));
  }
  pack_scales_q4_k(scales, mins, out.scales);
  std::memcpy(block, &out, sizeof out);
}

void params_q4_k(const std::byte* block, GroupParams* out) {
  const auto* in = reinterpret_cast<const BlockQ4_K*>(block);
  const float d = load_f16(in->d);
  const float dmin = load_f16(in->dmin);
  uint8_t scales[8], mins[8];
  unpack_scales_q4_k(in->scales, scales, mins);
  for (int g = 0; g < 8; ++g)
    out[g] = {.scale = d * static_cast<float>(scales[g]), .offset = -(dmin * static_cast<float>(mins[g]))};
}

void put_q4_k(const uint8_t* codes, std::byte* block) {
  uint8_t* qs = reinterpret_cast<BlockQ4_K*>(block)->qs;
  for (int pair = 0; pair < 4; ++pair, codes += 64, qs += 32) {
    for (int i = 0; i < 32; ++i) qs[i] = static_cast<uint8_t>(codes[i] | codes[i + 32] << 4);
  }
}

}  // namespace quire
