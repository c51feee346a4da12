// The AVX-512 kernel table.

#include <string.h>

#include "device/cpu/avx512_tables.h"

namespace quire::cpu {
namespace {

#include "device/cpu/row_ops.inc"
// Needs what stands above.
#include "device/cpu/attention_merge.inc"

LinearFn linear(const TileFormat& format, ActKind kind) {
  if (LinearFn found = avx512_linear_i4(format, kind)) return found;
  if (LinearFn found = avx512_linear_i5(format, kind)) return found;
  if (LinearFn found = avx512_linear_i6(format, kind)) return found;
  if (LinearFn found = avx512_linear_i8(format, kind)) return found;
  return avx512_linear_float(format, kind);
}

constexpr Kernels kAvx512 = {
    .name = "avx512",
    .linear = linear,
    .attend_bf16 = avx512_attend_bf16,
    .attend_f32 = avx512_attend_f32,
    .merge = merge,
    .finish = finish,
    .rms_norm = rms_norm,
    .pack_i8 = pack_i8,
    .pack_bf16 = pack_bf16,
    .pack_f32 = pack_f32,
    .rope = rope,
    .silu_mul = silu_mul,
    .gelu_tanh_mul = gelu_tanh_mul,
    .softcap = softcap,
    .log_sum_exp = log_sum_exp,
    .store_kv_bf16 = store_kv_bf16,
    .store_kv_f32 = store_kv_f32,
};

}  // namespace

const Kernels* avx512_kernels() {
  __builtin_cpu_init();
  const bool supported = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                         __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bf16");
  return supported ? &kAvx512 : nullptr;
}

}  // namespace quire::cpu
