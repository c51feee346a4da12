// The AVX2 kernel table, and the same with AVX-VNNI's integer products.

#include <cpuid.h>
#include <immintrin.h>
#include <string.h>

#include "device/cpu/avx2_tables.h"

namespace quire::cpu {
namespace {

#include "device/cpu/row_ops.inc"
// These need what stands above.
#include "device/cpu/attention_merge.inc"
#include "device/cpu/pack_i8_store.inc"
#include "device/cpu/pack_i8_token.inc"

using TileLanes = __m256;
constexpr int kTileRows = 6;
TileLanes multiply_add(float a, TileLanes b, TileLanes sum) { return _mm256_fmadd_ps(_mm256_set1_ps(a), b, sum); }
#include "device/cpu/matmul_tile.inc"

__m256 magnitude(__m256 x) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x); }

int32_t add_lanes(__m256i x) {
  const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
  const __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
}

// As pack_i8.inc, to the bit: rounding to even, and every sum is one of integers.
void pack_i8_group(const float* x, int64_t group, const PanelSlot& to) {
  __m256 v[4];
  for (int i = 0; i < 4; ++i) v[i] = _mm256_loadu_ps(x + 8 * i);
  const __m256 eight =
      _mm256_max_ps(_mm256_max_ps(magnitude(v[0]), magnitude(v[1])), _mm256_max_ps(magnitude(v[2]), magnitude(v[3])));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  const float peak = _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  const GroupScale by = group_scale(peak, to.power_of_two);
  const __m256 inverse = _mm256_set1_ps(by.inverse);
  __m256i n[4];
  for (int i = 0; i < 4; ++i) n[i] = _mm256_cvtps_epi32(_mm256_mul_ps(v[i], inverse));
  const int32_t low = add_lanes(_mm256_add_epi32(n[0], n[1]));
  const int32_t high = add_lanes(_mm256_add_epi32(n[2], n[3]));
  // Packing works on 128-bit halves: dwords come out as quads 0, 2, 4, 6, 1, 3, 5, 7.
  const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(n[0], n[1]), _mm256_packs_epi32(n[2], n[3]));
  const __m256i quads = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  alignas(32) int32_t dwords[8];
  _mm256_store_si256(reinterpret_cast<__m256i*>(dwords), quads);
  store_i8_group(dwords, by.scale, low, high, group, to);
}

LinearFn linear(const TileFormat& format, ActKind kind) {
  if (LinearFn found = avx2_linear_i4(format, kind)) return found;
  if (LinearFn found = avx2_linear_i5(format, kind)) return found;
  if (LinearFn found = avx2_linear_i6(format, kind)) return found;
  if (LinearFn found = avx2_linear_i8(format, kind)) return found;
  if (LinearFn found = avx2_linear_e4m3(format, kind)) return found;
  return avx2_linear_float(format, kind);
}

LinearFn linear_vnni(const TileFormat& format, ActKind kind) {
  return kind == ActKind::kI8 ? avxvnni_linear_i8(format) : linear(format, kind);
}

constexpr Kernels table(const char* name, LinearFn (*linear_kernels)(const TileFormat&, ActKind)) {
  return {
      .name = name,
      .linear = linear_kernels,
      .kv_bf16 = {avx2_attend_bf16, store_kv_bf16},
      .kv_f16 = {avx2_attend_f16, store_kv_f16},
      .kv_i8 = {avx2_attend_i8, store_kv_i8},
      .kv_f32 = {avx2_attend_f32, store_kv_f32},
      .attend_full_bf16 = nullptr,
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
}

constexpr Kernels kAvx2 = table("avx2", linear);
constexpr Kernels kAvxVnni = table("avx-vnni", linear_vnni);

// By CPUID, as not every compiler's __builtin_cpu_supports knows these two. Both need the operating system to save ymm
// registers, which "avx2" covers.
bool has_f16c() {
  unsigned a, b, c, d;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c >> 29 & 1) != 0;
}

bool has_avxvnni() {
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 4 & 1) != 0;
}

}  // namespace

const Kernels* avx2_kernels() {
  __builtin_cpu_init();
  const bool supported = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
  return supported ? &kAvx2 : nullptr;
}

const Kernels* avxvnni_kernels() { return avx2_kernels() != nullptr && has_avxvnni() ? &kAvxVnni : nullptr; }

}  // namespace quire::cpu
