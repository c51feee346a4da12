// AVX-512 linear kernels of the formats with 8-bit quants.

#include <immintrin.h>

#include "device/cpu/avx512_tables.h"

namespace quire::cpu {
namespace {

#include "device/cpu/avx512_linear.inc"

}  // namespace

LinearFn avx512_linear_i8(const TileFormat& format, ActKind kind) {
  return first_match<Format<Quants::kI8, Scale::kF16, false, 128, 32>,   // Q8_0, IQ4_NL
                     Format<Quants::kI8, Scale::kBF16, false, 128, 32>,  // MXFP4
                     Format<Quants::kI8, Scale::kSubI8, false, 128, 32>  // IQ4_XS
                     >(format, kind);
}

}  // namespace quire::cpu
