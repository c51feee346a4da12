// Linear kernels with int8 activations for CPUs that have AVX-VNNI; the rest of their table is the AVX2 one.

#include <immintrin.h>

#include "device/cpu/avx2_tables.h"

namespace quire::cpu {
namespace {

#include "device/cpu/avxvnni_dot.inc"
// Needs what stands above.
#include "device/cpu/avx2_linear.inc"

template <class F>
LinearFn integer_linear(ActKind) {
  return linear_i8<F>;
}

}  // namespace

LinearFn avxvnni_linear_i8(const TileFormat& format) {
  if (LinearFn found = first_match(I4Formats{}, format, ActKind::kI8)) return found;
  if (LinearFn found = first_match(I5Formats{}, format, ActKind::kI8)) return found;
  if (LinearFn found = first_match(I6Formats{}, format, ActKind::kI8)) return found;
  return first_match(I8Formats{}, format, ActKind::kI8);
}

}  // namespace quire::cpu
