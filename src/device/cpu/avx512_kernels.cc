// The AVX-512 kernel table.

#include <immintrin.h>
#include <string.h>

#include "device/cpu/avx512_tables.h"

namespace quire::cpu {
namespace {

#include "device/cpu/row_ops.inc"
// These need what stands above.
#include "device/cpu/attention_merge.inc"
#include "device/cpu/pack_i8_store.inc"
#include "device/cpu/pack_i8_token.inc"

using TileLanes = __m512;
constexpr int kTileRows = 12;
TileLanes multiply_add(float a, TileLanes b, TileLanes sum) { return _mm512_fmadd_ps(_mm512_set1_ps(a), b, sum); }
#include "device/cpu/matmul_tile.inc"

// As pack_i8.inc, to the bit: rounding to even, and every sum is one of integers.
void pack_i8_group(const float* x, int64_t group, const PanelSlot& to) {
  const __m512 low = _mm512_loadu_ps(x);
  const __m512 high = _mm512_loadu_ps(x + 16);
  const float peak = _mm512_reduce_max_ps(_mm512_max_ps(_mm512_abs_ps(low), _mm512_abs_ps(high)));
  const GroupScale by = group_scale(peak, to.power_of_two);
  const __m512 inverse = _mm512_set1_ps(by.inverse);
  const __m512i low_values = _mm512_cvtps_epi32(_mm512_mul_ps(low, inverse));
  const __m512i high_values = _mm512_cvtps_epi32(_mm512_mul_ps(high, inverse));
  alignas(32) int32_t quads[8];
  const __m128i low_bytes = _mm512_cvtepi32_epi8(low_values);
  const __m128i high_bytes = _mm512_cvtepi32_epi8(high_values);
  _mm_store_si128(reinterpret_cast<__m128i*>(quads), low_bytes);
  _mm_store_si128(reinterpret_cast<__m128i*>(quads + 4), high_bytes);
  // Sums of 16 bytes at once: each plus 128, less 16 x 128.
  const __m128i offset = _mm_set1_epi8(static_cast<char>(0x80));
  const __m128i low_halves = _mm_sad_epu8(_mm_xor_si128(low_bytes, offset), _mm_setzero_si128());
  const __m128i high_halves = _mm_sad_epu8(_mm_xor_si128(high_bytes, offset), _mm_setzero_si128());
  const int32_t low_sum = _mm_cvtsi128_si32(low_halves) + _mm_extract_epi32(low_halves, 2) - 16 * 128;
  const int32_t high_sum = _mm_cvtsi128_si32(high_halves) + _mm_extract_epi32(high_halves, 2) - 16 * 128;
  store_i8_group(quads, by.scale, low_sum, high_sum, group, to);
}

LinearFn linear(const TileFormat& format, ActKind kind) {
  if (LinearFn found = avx512_linear_i4(format, kind)) return found;
  if (LinearFn found = avx512_linear_i5(format, kind)) return found;
  if (LinearFn found = avx512_linear_i6(format, kind)) return found;
  if (LinearFn found = avx512_linear_i8(format, kind)) return found;
  if (LinearFn found = avx512_linear_e4m3(format, kind)) return found;
  return avx512_linear_float(format, kind);
}

constexpr Kernels kAvx512 = {
    .name = "avx512",
    .linear = linear,
    .kv_bf16 = {avx512_attend_bf16, store_kv_bf16},
    .kv_f16 = {avx512_attend_f16, store_kv_f16},
    .kv_i8 = {avx512_attend_i8, store_kv_i8},
    .kv_f32 = {avx512_attend_f32, store_kv_f32},
    .attend_full_bf16 = avx512_attend_full_bf16,
    .merge = merge,
    .finish = finish,
    .rms_norm = rms_norm,
    .pack_i8 = pack_i8,
    .pack_i8_token = pack_i8_token,
    .pack_bf16 = pack_bf16,
    .pack_f32 = pack_f32,
    .rope = rope,
    .silu_mul = silu_mul,
    .gelu_tanh_mul = gelu_tanh_mul,
    .softcap = softcap,
    .matmul_tile = matmul_tile,
    .log_sum_exp = log_sum_exp,
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
