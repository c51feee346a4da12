// AVX-512 linear kernels of the formats with 4-bit quants.

#include <immintrin.h>

#include "device/cpu/avx512_tables.h"

namespace quire::cpu {
namespace {

#include "device/cpu/avx512_linear.inc"

}  // namespace

LinearFn avx512_linear_i4(const TileFormat& format, ActKind kind) {
  return first_match<Format<Quants::kI4, Scale::kF16, false, 8, 32>,   // Q4_0
                     Format<Quants::kI4, Scale::kBF16, false, 8, 32>,  // symmetric 4-bit with bf16 scales
                     Format<Quants::kI4, Scale::kF16, true, 0, 32>,    // Q4_1
                     Format<Quants::kI4, Scale::kSubU8, true, 0, 32>,  // Q4_K
                     Format<Quants::kI4, Scale::kSubU8, true, 0, 16>,  // Q2_K
                     Format<Quants::kI4, Scale::kSubI8, false, 4, 16>  // Q3_K
                     >(format, kind);
}

}  // namespace quire::cpu
