// AVX-512 linear kernels of the formats with 5-bit quants.

#include <immintrin.h>

#include "device/cpu/avx512_tables.h"

namespace quire::cpu {
namespace {

#include "device/cpu/avx512_linear.inc"
// Needs what stands above.
#include "device/cpu/avx512_integer.inc"

}  // namespace

LinearFn avx512_linear_i5(const TileFormat& format, ActKind kind) { return first_match(I5Formats{}, format, kind); }

}  // namespace quire::cpu
