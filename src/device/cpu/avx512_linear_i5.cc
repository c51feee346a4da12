// AVX-512 linear kernels of the formats with 5-bit quants.

#include <immintrin.h>

#include "device/cpu/avx512_tables.h"

namespace quire::cpu {
namespace {

#include "device/cpu/avx512_linear.inc"

}  // namespace

LinearFn avx512_linear_i5(const TileFormat& format, ActKind kind) {
  return first_match<Format<Quants::kI5, Scale::kF16, false, 16, 32>,  // Q5_0
                     Format<Quants::kI5, Scale::kF16, true, 0, 32>,    // Q5_1
                     Format<Quants::kI5, Scale::kSubU8, true, 0, 32>   // Q5_K
                     >(format, kind);
}

}  // namespace quire::cpu
