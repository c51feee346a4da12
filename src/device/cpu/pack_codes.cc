// Packing of weights that come as codes with scales (tensor/weight_type.h) rather than in blocks.
#include <algorithm>
#include <cstring>

#include "device/cpu/pack.h"
#include "tensor/half.h"

namespace quire::cpu {
namespace {

void store_scale(Scale kind, float value, std::byte* scales, int64_t index) {
  if (kind == Scale::kF32) {
    std::memcpy(scales + 4 * index, &value, sizeof value);
    return;
  }
  // The value came from 16 bits, so nothing is rounded.
  const uint16_t bits = kind == Scale::kF16 ? f32_to_f16(value) : f32_to_bf16(value);
  std::memcpy(scales + 2 * index, &bits, sizeof bits);
}

}  // namespace

void StripPacker::pack(const CodeReader& codes, int64_t first, int64_t rows, std::byte* strip) {
  std::memset(strip, 0, static_cast<size_t>(layout_.bytes));
  std::fill(q_.begin(), q_.end(), format_.zero);
  const int64_t groups = code_groups(type_, k_);
  std::vector<float> scales(static_cast<size_t>(rows * groups));
  std::vector<uint8_t> zeros(scales.size());
  codes(first, rows, {q_.data(), layout_.k_padded, scales.data(), zeros.data(), groups});
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t g = 0; g < groups; ++g) {
      const auto from = static_cast<size_t>(r * groups + g);
      std::byte* block = strip + layout_.block_at(g / layout_.block_groups);
      const int64_t to = g % layout_.block_groups * kStripRows + r;
      store_scale(format_.scale, scales[from], block, to);
      if (format_.zeros) block[layout_.mins + to] = static_cast<std::byte>(zeros[from] - format_.zero);
    }
  }
  pack_quants(strip);
}

}  // namespace quire::cpu
