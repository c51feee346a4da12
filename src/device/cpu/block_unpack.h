// Takes the blocks of one stored row apart into the integers and scales that a strip is built from
// (tile_format.h). Layouts: ggml's block formats, as tensor/quant documents them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace quire::cpu {

// Where the parts of one row go. `q` has k_padded entries; the other arrays one entry a group or super block, as the
// type's TileFormat has them. 16-bit scales are f16 or bf16 bits.
struct UnpackedRow {
  uint8_t* q = nullptr;
  uint16_t* super_scale = nullptr;
  uint16_t* super_min = nullptr;
  uint16_t* scale16 = nullptr;
  uint16_t* min16 = nullptr;
  uint8_t* scale8 = nullptr;  // two's complement for Scale::kSubI8
  uint8_t* min8 = nullptr;
};

// `k` is a multiple of the type's block size. Integer types only.
void unpack_row(DType dtype, const std::byte* blocks, int64_t k, const UnpackedRow& row);

}  // namespace quire::cpu
