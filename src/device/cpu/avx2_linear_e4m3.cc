// AVX2 linear kernels of E4M3 weights.

#include <immintrin.h>

#include "device/cpu/avx2_tables.h"

namespace quire::cpu {
namespace {

#include "device/cpu/avx2_groups.inc"
// Needs what stands above.
#include "device/cpu/avx2_decoded.inc"

template <class F>
LinearFn integer_linear(ActKind kind) {
  if (kind == ActKind::kBF16) return linear_decoded<F, ActKind::kBF16>;
  return kind == ActKind::kF32 ? linear_decoded<F, ActKind::kF32> : nullptr;
}

}  // namespace

LinearFn avx2_linear_e4m3(const TileFormat& format, ActKind kind) { return first_match(E4M3Formats{}, format, kind); }

}  // namespace quire::cpu
