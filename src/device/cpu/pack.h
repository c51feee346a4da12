// Repacks stored rows into a strip (tile_format.h), and reads a strip back as floats for the scalar kernels and tests.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/cpu/tile_format.h"
#include "tensor/weight_type.h"

namespace quire::cpu {

// A packed matrix: where it lies and how it is laid out. Non-owning.
struct PackedMatrix {
  TileFormat format;
  StripLayout layout;
  int64_t n = 0;
  int64_t k = 0;
  const std::byte* data = nullptr;  // 64-byte aligned, strip_count(n) * layout.bytes

  const std::byte* strip(int64_t index) const { return data + index * layout.bytes; }
};

// Packs strips one after another, reusing its scratch memory. One per thread.
class StripPacker {
 public:
  StripPacker(const WeightType& type, int64_t k);

  // `rows` are the 16 stored rows of the strip; null where the matrix has none. `strip` is 64-byte aligned.
  void pack(const std::array<const std::byte*, kStripRows>& rows, std::byte* strip);
  // Of a type with codes: packs rows [first, first + rows), at most 16.
  void pack(const CodeReader& codes, int64_t first, int64_t rows, std::byte* strip);

 private:
  void pack_floats(const std::array<const std::byte*, kStripRows>& rows, std::byte* strip) const;
  void pack_scales(int64_t row, std::byte* strip) const;
  void pack_quants(std::byte* strip) const;

  WeightType type_;
  int64_t k_;
  TileFormat format_;
  StripLayout layout_;
  int64_t groups_ = 0;
  int64_t supers_ = 0;
  std::vector<uint8_t> q_;       // [16][k_padded]
  std::vector<uint16_t> row16_;  // scratch of one row: scales, mins, super scales, super mins
  std::vector<uint8_t> row8_;
};

// Decodes K [first, first + n) of one row of a strip, exactly as the stored type decodes.
void decode_strip_row(const PackedMatrix& matrix, const std::byte* strip, int64_t row, int64_t first, int64_t n,
                      float* out);

// Integer value q of (row, k) before zero, scale and min are applied.
int strip_quant(const PackedMatrix& matrix, const std::byte* strip, int64_t row, int64_t k);
// Scale and min of (row, group), already multiplied with the super scale. min is 0 where there is none. A zero point
// beside the format's stands in both: as itself, and as min = -(scale * zero).
struct ScaleMin {
  float scale = 0;
  float min = 0;
  int zero = 0;
};
ScaleMin strip_scale(const PackedMatrix& matrix, const std::byte* strip, int64_t row, int64_t group);

}  // namespace quire::cpu
