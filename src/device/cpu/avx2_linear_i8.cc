// AVX2 linear kernels of the formats with 8-bit quants.

#include <immintrin.h>

#include "device/cpu/avx2_tables.h"

namespace quire::cpu {
namespace {

#include "device/cpu/avx2_dot.inc"
#include "device/cpu/avx2_linear.inc"
// These need what stands above.
#include "device/cpu/avx2_decoded.inc"
// And this.
#include "device/cpu/avx2_integer.inc"

}  // namespace

LinearFn avx2_linear_i8(const TileFormat& format, ActKind kind) { return first_match(I8Formats{}, format, kind); }

}  // namespace quire::cpu
