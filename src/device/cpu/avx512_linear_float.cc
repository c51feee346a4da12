// AVX-512 linear kernels of the unquantized formats.

#include <immintrin.h>

#include "device/cpu/avx512_tables.h"

namespace quire::cpu {
namespace {

#include "device/cpu/avx512_linear.inc"

// bf16 weights and activations.
template <int kRows>
void bf16_rows(const StripView& strip, const Panel& panel, float* out, int64_t out_stride) {
  __m512 acc[kRows];
  QUIRE_UNROLL for (int m = 0; m < kRows; ++m) acc[m] = _mm512_setzero_ps();
  const uint8_t* line = strip.quants;
  const uint16_t* a = panel.bf16;
  for (int64_t k = 0; k < strip.k_padded; k += 2, line += 64, a += 2 * kRows) {
    prefetch_group<1>(strip, line);
    const __m512i weights = load_line(line);
    QUIRE_UNROLL for (int m = 0; m < kRows; ++m) acc[m] = dot_bf16(acc[m], weights, a + 2 * m);
  }
  QUIRE_UNROLL for (int m = 0; m < kRows; ++m) _mm512_storeu_ps(out + m * out_stride, acc[m]);
}

template <int kRows>
QUIRE_INLINE const float* fma_rows(__m512 weight, const float* a, __m512* acc) {
  QUIRE_UNROLL for (int m = 0; m < kRows; ++m) acc[m] = _mm512_fmadd_ps(weight, _mm512_set1_ps(a[m]), acc[m]);
  return a + kRows;
}

// bf16, f16 or f32 weights with f32 activations.
template <Quants kQuants, int kRows>
void float_rows(const StripView& strip, const Panel& panel, float* out, int64_t out_stride) {
  __m512 acc[kRows];
  QUIRE_UNROLL for (int m = 0; m < kRows; ++m) acc[m] = _mm512_setzero_ps();
  const uint8_t* p = strip.quants;
  const float* a = panel.f32;
  for (int64_t k = 0; k < strip.k_padded; k += 2) {
    prefetch_group<1>(strip, p);
    if constexpr (kQuants == Quants::kBF16) {
      const __m512i pairs = load_line(p);
      a = fma_rows<kRows>(_mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)), a, acc);
      a = fma_rows<kRows>(
          _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32(static_cast<int>(0xffff0000u)))), a, acc);
      p += 64;
    } else if constexpr (kQuants == Quants::kF16) {
      a = fma_rows<kRows>(load_f16(p), a, acc);
      a = fma_rows<kRows>(load_f16(p + 32), a, acc);
      p += 64;
    } else {
      a = fma_rows<kRows>(_mm512_load_ps(p), a, acc);
      a = fma_rows<kRows>(_mm512_load_ps(p + 64), a, acc);
      p += 128;
    }
  }
  QUIRE_UNROLL for (int m = 0; m < kRows; ++m) _mm512_storeu_ps(out + m * out_stride, acc[m]);
}

void linear_bf16(const TileFormat&, const StripView& strip, const Panel& panel, float* out, int64_t out_stride) {
  QUIRE_FOR_PANEL_ROWS(bf16_rows, )
}

template <Quants kQuants>
void linear_float(const TileFormat&, const StripView& strip, const Panel& panel, float* out, int64_t out_stride) {
  QUIRE_FOR_PANEL_ROWS(float_rows, kQuants QUIRE_COMMA)
}

}  // namespace

LinearFn avx512_linear_float(const TileFormat& format, ActKind kind) {
  if (kind == ActKind::kBF16) return format.quants == Quants::kBF16 ? linear_bf16 : nullptr;
  if (kind != ActKind::kF32) return nullptr;
  switch (format.quants) {
    case Quants::kBF16:
      return linear_float<Quants::kBF16>;
    case Quants::kF16:
      return linear_float<Quants::kF16>;
    case Quants::kF32:
      return linear_float<Quants::kF32>;
    default:
      return nullptr;
  }
}

}  // namespace quire::cpu
