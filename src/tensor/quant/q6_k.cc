#include "tensor/quant/q6_k.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "tensor/half.h"

namespace quire {
namespace {

constexpr float kTooSmall = 1e-15f;  // a group whose largest weight is below this is 0

int nearest(float value) { return static_cast<int>(std::nearbyint(value)); }

int quant_of(float value) { return std::clamp(nearest(value), -32, 31); }

// The scale for 16 weights.
float best_scale(const float* x) {
  float largest = 0;  // with its sign
  for (int i = 0; i < 16; ++i) {
    if (std::fabs(x[i]) > std::fabs(largest)) largest = x[i];
  }
  if (std::fabs(largest) < kTooSmall) return 0;
  float scale = 0;
  float best = 0;
  const auto consider = [&](float inverse, bool first) {
    float products = 0;
    float squares = 0;
    for (int i = 0; i < 16; ++i) {
      const auto q = static_cast<float>(quant_of(inverse * x[i]));
      const float weight = x[i] * x[i];
      products += weight * x[i] * q;
      squares += weight * q * q;
    }
    if (first) {
      scale = squares > 0 ? products / squares : 0;
      best = scale * products;
    } else if (squares > 0 && products * products > best * squares) {
      scale = products / squares;
      best = scale * products;
    }
  };
  consider(-32.0f / largest, true);
  for (int step = -9; step <= 9; ++step) {
    if (step != 0) consider(-(32.0f + 0.1f * static_cast<float>(step)) / largest, false);
  }
  return scale;
}

}  // namespace

void encode_q6_k(const float* values, int64_t n_blocks, std::byte* blocks) {
  auto* block = reinterpret_cast<BlockQ6_K*>(blocks);
  for (int64_t b = 0; b < n_blocks; ++b, ++block, values += 256) {
    *block = {};
    std::array<float, 16> scales;
    float largest = 0;  // with its sign
    for (size_t g = 0; g < 16; ++g) {
      scales[g] = best_scale(values + 16 * g);
      if (std::fabs(scales[g]) > std::fabs(largest)) largest = scales[g];
    }
    if (std::fabs(largest) < kTooSmall) continue;
    const float inverse = -128.0f / largest;
    store_u16(block->d, f32_to_f16(1 / inverse));
    const float d = load_f16(block->d);
    for (int group = 0; group < 16; ++group) {
      block->scales[group] = static_cast<int8_t>(std::min(127, nearest(inverse * scales[static_cast<size_t>(group)])));
      const float scale = d * static_cast<float>(block->scales[group]);
      const int half = group / 8;
      const int first = 16 * (group % 8);
      uint8_t* ql = block->ql + 64 * half + first % 64;
      uint8_t* qh = block->qh + 32 * half + first % 32;
      for (int i = 0; i < 16; ++i) {
        const int q = (scale == 0 ? 0 : quant_of(values[16 * group + i] / scale)) + 32;
        ql[i] = static_cast<uint8_t>(ql[i] | (q & 15) << 4 * (first / 64));
        qh[i] = static_cast<uint8_t>(qh[i] | q >> 4 << 2 * (first / 32));
      }
    }
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
