#include "device/cpu/tile_format.h"

#include <algorithm>

#include "base/check.h"
#include "tensor/weight_type.h"

namespace quire::cpu {
namespace {

int64_t round_up(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

// Bytes of the quants of 16 rows x 32 K.
int64_t quant_bytes_per_group(Quants quants) {
  switch (quants) {
    case Quants::kI4:
      return 4 * kLineBytes;
    case Quants::kI5:
      return 5 * kLineBytes;
    case Quants::kI6:
      return 6 * kLineBytes;
    case Quants::kI8:
    case Quants::kE4M3:
      return 8 * kLineBytes;
    case Quants::kBF16:
    case Quants::kF16:
      return 16 * kLineBytes;
    case Quants::kF32:
      return 32 * kLineBytes;
  }
  return 0;
}

int64_t scale_bytes(const TileFormat& format) {
  if (format.super()) return 1;
  return format.scale == Scale::kF32 ? 4 : 2;
}

TileFormat code_format(const WeightType& type) {
  TileFormat format;
  format.scale = type.dtype == DType::kF16 ? Scale::kF16 : type.dtype == DType::kBF16 ? Scale::kBF16 : Scale::kF32;
  format.group = type.group;
  format.zeros = type.zeros;
  switch (type.codes) {
    case CodeKind::kInt4:
      format.quants = Quants::kI4;
      format.zero = type.zeros ? 0 : 8;
      break;
    case CodeKind::kInt8:
      format.quants = Quants::kI8;
      format.zero = 128;
      break;
    case CodeKind::kFp8:
      format.quants = Quants::kE4M3;
      break;
    case CodeKind::kNone:
      QUIRE_CHECK(false);
  }
  return format;
}

}  // namespace

TileFormat tile_format(const WeightType& type) {
  if (type.codes != CodeKind::kNone) return code_format(type);
  switch (type.dtype) {
    case DType::kF32:
      return {.quants = Quants::kF32};
    case DType::kF16:
      return {.quants = Quants::kF16};
    case DType::kBF16:
      return {.quants = Quants::kBF16};
    case DType::kQ4_0:
      return {.quants = Quants::kI4, .scale = Scale::kF16, .zero = 8, .group = 32};
    case DType::kQ4_1:
      return {.quants = Quants::kI4, .scale = Scale::kF16, .mins = true, .group = 32};
    case DType::kQ5_0:
      return {.quants = Quants::kI5, .scale = Scale::kF16, .zero = 16, .group = 32};
    case DType::kQ5_1:
      return {.quants = Quants::kI5, .scale = Scale::kF16, .mins = true, .group = 32};
    case DType::kQ8_0:
      return {.quants = Quants::kI8, .scale = Scale::kF16, .zero = 128, .group = 32};
    case DType::kQ2_K:
      return {.quants = Quants::kI4, .scale = Scale::kSubU8, .mins = true, .group = 16};
    case DType::kQ3_K:
      return {.quants = Quants::kI4, .scale = Scale::kSubI8, .zero = 4, .group = 16};
    case DType::kQ4_K:
      return {.quants = Quants::kI4, .scale = Scale::kSubU8, .mins = true, .group = 32};
    case DType::kQ5_K:
      return {.quants = Quants::kI5, .scale = Scale::kSubU8, .mins = true, .group = 32};
    case DType::kQ6_K:
      return {.quants = Quants::kI6, .scale = Scale::kSubI8, .zero = 32, .group = 16};
    // The codebook types become the integers they stand for; that takes 8 bits a weight instead of 4, and no table.
    case DType::kIQ4_NL:
      return {.quants = Quants::kI8, .scale = Scale::kF16, .zero = 128, .group = 32};
    case DType::kIQ4_XS:
      return {.quants = Quants::kI8, .scale = Scale::kSubI8, .zero = 128, .group = 32};
    case DType::kMXFP4:
      return {.quants = Quants::kI8, .scale = Scale::kBF16, .zero = 128, .group = 32};
  }
  QUIRE_CHECK(false);
}

std::string_view quants_name(Quants quants) {
  switch (quants) {
    case Quants::kI4:
      return "int4";
    case Quants::kI5:
      return "int5";
    case Quants::kI6:
      return "int6";
    case Quants::kI8:
      return "int8";
    case Quants::kE4M3:
      return "e4m3";
    case Quants::kBF16:
      return "bf16";
    case Quants::kF16:
      return "f16";
    case Quants::kF32:
      return "f32";
  }
  return "";
}

StripLayout strip_layout(const TileFormat& format, int64_t k) {
  StripLayout layout;
  layout.k_padded = round_up(k, kTileK);
  layout.group_bytes = quant_bytes_per_group(format.quants);
  layout.block_k = layout.k_padded;
  if (format.scaled()) {
    const int64_t group_bytes = kStripRows * (scale_bytes(format) * (format.mins ? 2 : 1) + (format.zeros ? 1 : 0));
    int64_t groups = 1;
    while (groups * group_bytes % kLineBytes != 0) groups *= 2;
    layout.block_k = std::min(layout.k_padded, std::max(kTileK, groups * format.group));
    layout.block_groups = round_up(layout.block_k, format.group) / format.group;
    layout.mins = layout.block_groups * kStripRows * scale_bytes(format);
    layout.quants = round_up(layout.block_groups * group_bytes, kLineBytes);
  }
  layout.block_bytes = layout.quants + layout.block_k / kActGroup * layout.group_bytes;
  if (format.super()) layout.super_bytes = kSuperK / layout.block_k * layout.block_bytes + kLineBytes;
  const int64_t last = layout.k_padded - kActGroup;
  layout.bytes = layout.quants_at(last) + layout.group_bytes;
  return layout;
}

}  // namespace quire::cpu
