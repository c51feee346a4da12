#include "tensor/quant/q6_k.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "tensor/half.h"

namespace quire {
namespace {

constexpr float kTooSmall = 1e-15f;  // a group whose largest weight is below this is 0

int nearest(float value) { return static_cast<int>(std::nearbyint(value)); }

int quant_of(float value) { return std::clamp(nearest(value), -32, 31); }

}  // namespace

void fit_q6_k(const float* values, const float* importance, std::byte* block) {
  BlockQ6_K out = {};
  std::array<float, 16> scales;
  float largest = 0;  // with its sign
  for (size_t g = 0; g < 16; ++g) {
    scales[g] = search_scale(values + 16 * g, importance + 16 * g, 16, 32);
    if (std::fabs(scales[g]) > std::fabs(largest)) largest = scales[g];
  }
  if (std::fabs(largest) >= kTooSmall) {
    const float inverse = -128.0f / largest;
    store_u16(out.d, f32_to_f16(1 / inverse));
    for (size_t g = 0; g < 16; ++g) out.scales[g] = static_cast<int8_t>(std::min(127, nearest(inverse * scales[g])));
  }
  std::memcpy(block, &out, sizeof out);
}

void params_q6_k(const std::byte* block, GroupParams* out) {
  const auto* in = reinterpret_cast<const BlockQ6_K*>(block);
  const float d = load_f16(in->d);
  for (int g = 0; g < 16; ++g) {
    const float scale = d * static_cast<float>(in->scales[g]);
    out[g] = {.scale = scale, .offset = -32 * scale};
  }
}

void put_q6_k(const uint8_t* codes, std::byte* block) {
  auto* out = reinterpret_cast<BlockQ6_K*>(block);
  std::memset(out->ql, 0, sizeof out->ql);
  std::memset(out->qh, 0, sizeof out->qh);
  for (int group = 0; group < 16; ++group) {
    const int half = group / 8;
    const int first = 16 * (group % 8);  // of this group within the half
    uint8_t* ql = out->ql + 64 * half + first % 64;
    uint8_t* qh = out->qh + 32 * half + first % 32;
    for (int i = 0; i < 16; ++i) {
      const int q = codes[16 * group + i];
      ql[i] = static_cast<uint8_t>(ql[i] | (q & 15) << 4 * (first / 64));
      qh[i] = static_cast<uint8_t>(qh[i] | q >> 4 << 2 * (first / 32));
    }
  }
}

void encode_q6_k(const float* values, int64_t n_blocks, std::byte* blocks) {
  std::array<float, 256> squares;
  std::array<uint8_t, 256> codes;
  std::array<GroupParams, 16> params;
  for (int64_t b = 0; b < n_blocks; ++b, blocks += sizeof(BlockQ6_K), values += 256) {
    for (size_t i = 0; i < 256; ++i) squares[i] = values[i] * values[i];
    fit_q6_k(values, squares.data(), blocks);
    if (load_f16(reinterpret_cast<const BlockQ6_K*>(blocks)->d) == 0) continue;
    params_q6_k(blocks, params.data());
    for (size_t i = 0; i < 256; ++i) {
      const float scale = params[i / 16].scale;
      codes[i] = static_cast<uint8_t>((scale == 0 ? 0 : quant_of(values[i] / scale)) + 32);
    }
    put_q6_k(codes.data(), blocks);
  }
}

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
