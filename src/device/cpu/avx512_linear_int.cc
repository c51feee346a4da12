// AVX-512 linear kernels of the formats with quants of QUIRE_QUANT_BITS bits: built once for each number (CMakeLists.txt), since each
// takes the compiler a minute.

#include <immintrin.h>

#include "base/status.h"
#include "device/cpu/avx512_tables.h"

namespace quire::cpu {
namespace {

// In this order: each uses what stands above it.
// clang-format off
#include "device/cpu/avx512_linear.inc"
#include "device/cpu/avx512_integer.inc"
// clang-format on

}  // namespace

#define QUIRE_FORMATS(bits) QUIRE_CONCAT(QUIRE_CONCAT(I, bits), Formats)

LinearFn QUIRE_CONCAT(avx512_linear_i, QUIRE_QUANT_BITS)(const TileFormat& format, ActKind kind) {
  return first_match(QUIRE_FORMATS(QUIRE_QUANT_BITS){}, format, kind);
}

}  // namespace quire::cpu
