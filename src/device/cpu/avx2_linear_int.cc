// AVX2 linear kernels of the formats with quants of QUIRE_QUANT_BITS bits: built once for each number (CMakeLists.txt), since each
// takes the compiler a minute.

#include <immintrin.h>

#include "base/status.h"
#include "device/cpu/avx2_tables.h"

namespace quire::cpu {
namespace {

// In this order: each uses what stands above it.
// clang-format off
#include "device/cpu/avx2_dot.inc"
#include "device/cpu/avx2_linear.inc"
#include "device/cpu/avx2_decoded.inc"
#include "device/cpu/avx2_integer.inc"
// clang-format on

}  // namespace

#define QUIRE_FORMATS(bits) QUIRE_CONCAT(QUIRE_CONCAT(I, bits), Formats)

LinearFn QUIRE_CONCAT(avx2_linear_i, QUIRE_QUANT_BITS)(const TileFormat& format, ActKind kind) {
  return first_match(QUIRE_FORMATS(QUIRE_QUANT_BITS){}, format, kind);
}

}  // namespace quire::cpu
