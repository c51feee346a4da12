#include "device/cpu/pack.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "device/cpu/block_unpack.h"
#include "tensor/half.h"

namespace quire::cpu {
namespace {

uint32_t load32(const uint8_t* p) {
  uint32_t v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

void store32(std::byte* p, uint32_t v) { std::memcpy(p, &v, sizeof v); }

uint16_t load16(const std::byte* p) {
  uint16_t v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

// Lines before those of the low nibbles.
int64_t low_lines(Quants quants) { return quants == Quants::kI5 || quants == Quants::kI6 ? 1 : 0; }

// The dwords of one row's 32 K inside a group of lines that starts at `lines`.
void pack_group(Quants quants, const uint8_t* q, std::byte* lines) {
  constexpr uint32_t kNibbles = 0x0f0f0f0f;
  std::byte* low = lines + low_lines(quants) * kLineBytes;
  if (quants == Quants::kI8 || quants == Quants::kE4M3) {
    for (int quad = 0; quad < 8; ++quad) store32(lines + quad * kLineBytes, load32(q + 4 * quad));
    return;
  }
  for (int p = 0; p < 4; ++p) {
    store32(low + p * kLineBytes, (load32(q + 4 * p) & kNibbles) | (load32(q + 16 + 4 * p) & kNibbles) << 4);
  }
  if (quants == Quants::kI5) {
    uint32_t bits = 0;
    for (int quad = 0; quad < 8; ++quad) bits |= (load32(q + 4 * quad) >> 4 & 0x01010101) << quad;
    store32(lines, bits);
  } else if (quants == Quants::kI6) {
    for (int half = 0; half < 2; ++half) {
      uint32_t bits = 0;
      for (int i = 0; i < 4; ++i) bits |= (load32(q + 16 * half + 4 * i) >> 4 & 0x03030303) << (2 * i);
      store32(lines + 5 * half * kLineBytes, bits);
    }
  }
}

}  // namespace

StripPacker::StripPacker(const WeightType& type, int64_t k)
    : type_(type), k_(k), format_(tile_format(type)), layout_(strip_layout(format_, k)) {
  if (!format_.scaled()) return;
  groups_ = (layout_.k_padded + format_.group - 1) / format_.group;
  supers_ = (k + kSuperK - 1) / kSuperK;
  q_.resize(static_cast<size_t>(kStripRows * layout_.k_padded));
  row16_.resize(static_cast<size_t>(2 * std::max(groups_, supers_)));
  row8_.resize(static_cast<size_t>(2 * groups_));
}

void StripPacker::pack(const std::array<const std::byte*, kStripRows>& rows, std::byte* strip) {
  if (!format_.integer()) {
    pack_floats(rows, strip);
    return;
  }
  std::memset(strip, 0, static_cast<size_t>(layout_.bytes));
  std::fill(q_.begin(), q_.end(), format_.zero);
  const size_t groups = static_cast<size_t>(groups_);
  const size_t half16 = row16_.size() / 2;
  for (int64_t r = 0; r < kStripRows; ++r) {
    const std::byte* stored = rows[static_cast<size_t>(r)];
    if (stored == nullptr) continue;
    std::fill(row16_.begin(), row16_.end(), 0);
    std::fill(row8_.begin(), row8_.end(), 0);
    UnpackedRow out;
    out.q = q_.data() + r * layout_.k_padded;
    (format_.super() ? out.super_scale : out.scale16) = row16_.data();
    (format_.super() ? out.super_min : out.min16) = row16_.data() + half16;
    out.scale8 = row8_.data();
    out.min8 = row8_.data() + groups;
    unpack_row(type_.dtype, stored, k_, out);
    pack_scales(r, strip);
  }
  pack_quants(strip);
}

void StripPacker::pack_scales(int64_t row, std::byte* strip) const {
  const size_t half16 = row16_.size() / 2;
  const auto put16 = [](std::byte* to, uint16_t value) { std::memcpy(to, &value, sizeof value); };
  for (int64_t s = 0; format_.super() && s < supers_; ++s) {
    std::byte* to = strip + s * layout_.super_bytes + 2 * row;
    put16(to, row16_[static_cast<size_t>(s)]);
    if (format_.mins) put16(to + 2 * kStripRows, row16_[half16 + static_cast<size_t>(s)]);
  }
  for (int64_t g = 0; g < groups_; ++g) {
    std::byte* block = strip + layout_.block_at(g / layout_.block_groups);
    const int64_t at = g % layout_.block_groups * kStripRows + row;
    if (format_.super()) {
      block[at] = std::byte{row8_[static_cast<size_t>(g)]};
      if (format_.mins) block[layout_.mins + at] = std::byte{row8_[static_cast<size_t>(groups_ + g)]};
    } else {
      put16(block + 2 * at, row16_[static_cast<size_t>(g)]);
      if (format_.mins) put16(block + layout_.mins + 2 * at, row16_[half16 + static_cast<size_t>(g)]);
    }
  }
}

void StripPacker::pack_quants(std::byte* strip) const {
  for (int64_t k = 0; k < layout_.k_padded; k += kActGroup) {
    std::byte* lines = strip + layout_.quants_at(k);
    for (int64_t r = 0; r < kStripRows; ++r) {
      pack_group(format_.quants, q_.data() + r * layout_.k_padded + k, lines + 4 * r);
    }
  }
}

void StripPacker::pack_floats(const std::array<const std::byte*, kStripRows>& rows, std::byte* strip) const {
  std::memset(strip, 0, static_cast<size_t>(layout_.bytes));
  // Elements that lie side by side in a row stay so in a line: pairs of bf16, single f16 and f32.
  const int64_t unit_bytes = format_.quants == Quants::kF16 ? 2 : 4;
  const int64_t element_bytes = format_.quants == Quants::kF32 ? 4 : 2;
  const int64_t row_bytes = k_ * element_bytes;
  for (int64_t r = 0; r < kStripRows; ++r) {
    const std::byte* stored = rows[static_cast<size_t>(r)];
    if (stored == nullptr) continue;
    std::byte* out = strip + r * unit_bytes;
    for (int64_t at = 0; at < row_bytes; at += unit_bytes, out += kStripRows * unit_bytes) {
      std::memcpy(out, stored + at, static_cast<size_t>(std::min(unit_bytes, row_bytes - at)));
    }
  }
}

int strip_quant(const PackedMatrix& matrix, const std::byte* strip, int64_t row, int64_t k) {
  const int64_t in_group = k % kActGroup;
  const int64_t quad = in_group / 4;
  const std::byte* lines = strip + matrix.layout.quants_at(k - in_group) + 4 * row + k % 4;
  if (matrix.format.quants == Quants::kI8 || matrix.format.quants == Quants::kE4M3) {
    return std::to_integer<int>(lines[quad * kLineBytes]);
  }
  const int both = std::to_integer<int>(lines[(low_lines(matrix.format.quants) + quad % 4) * kLineBytes]);
  const int low = quad < 4 ? both & 15 : both >> 4;
  if (matrix.format.quants == Quants::kI5) return low | (std::to_integer<int>(lines[0]) >> quad & 1) << 4;
  if (matrix.format.quants == Quants::kI6) {
    return low | (std::to_integer<int>(lines[quad / 4 * 5 * kLineBytes]) >> (2 * (quad % 4)) & 3) << 4;
  }
  return low;
}

ScaleMin strip_scale(const PackedMatrix& matrix, const std::byte* strip, int64_t row, int64_t group) {
  const TileFormat& format = matrix.format;
  const StripLayout& layout = matrix.layout;
  const std::byte* scales = strip + layout.block_at(group / layout.block_groups);
  const int64_t at = group % layout.block_groups * kStripRows + row;
  const std::byte* mins = scales + layout.mins;
  ScaleMin result;
  if (!format.super()) {
    if (format.scale == Scale::kF32) {
      std::memcpy(&result.scale, scales + 4 * at, sizeof result.scale);
    } else {
      const uint16_t bits = load16(scales + 2 * at);
      result.scale = format.scale == Scale::kBF16 ? bf16_to_f32(bits) : f16_to_f32(bits);
    }
    if (format.mins) result.min = f16_to_f32(load16(mins + 2 * at));
    if (format.zeros) {
      result.zero = static_cast<int8_t>(mins[at]);
      result.min = -(result.scale * static_cast<float>(result.zero));
    }
    return result;
  }
  const std::byte* d = strip + group * format.group / kSuperK * layout.super_bytes + 2 * row;
  const uint8_t code = std::to_integer<uint8_t>(scales[at]);
  const int sub = format.scale == Scale::kSubI8 ? static_cast<int8_t>(code) : code;
  result.scale = f16_to_f32(load16(d)) * static_cast<float>(sub);
  if (format.mins) {
    const int sub_min = std::to_integer<int>(mins[at]);
    result.min = -(f16_to_f32(load16(d + 2 * kStripRows)) * static_cast<float>(sub_min));
  }
  return result;
}

void decode_strip_row(const PackedMatrix& matrix, const std::byte* strip, int64_t row, int64_t first, int64_t n,
                      float* out) {
  const TileFormat& format = matrix.format;
  for (int64_t k = first; k < first + n; ++k) {
    float value = 0;
    if (format.scaled()) {
      const ScaleMin s = strip_scale(matrix, strip, row, k / format.group);
      const int quant = strip_quant(matrix, strip, row, k);
      if (format.quants == Quants::kE4M3) {
        value = s.scale * e4m3_to_f32(static_cast<uint8_t>(quant));
      } else if (format.zeros) {
        value = s.scale * static_cast<float>(quant - format.zero - s.zero);
      } else {
        value = s.scale * static_cast<float>(quant - format.zero) + s.min;
      }
    } else if (format.quants == Quants::kF32) {
      std::memcpy(&value, strip + 4 * (k * kStripRows + row), sizeof value);
    } else if (format.quants == Quants::kF16) {
      value = f16_to_f32(load16(strip + 2 * (k * kStripRows + row)));
    } else {
      value = bf16_to_f32(load16(strip + 4 * (k / 2 * kStripRows + row) + 2 * (k % 2)));
    }
    *out++ = value;
  }
}

}  // namespace quire::cpu
