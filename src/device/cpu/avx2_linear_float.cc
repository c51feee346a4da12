// AVX2 linear kernels of the unquantized formats.

#include <immintrin.h>

#include "device/cpu/avx2_tables.h"

namespace quire::cpu {
namespace {

#include "device/cpu/avx2_blocks.inc"

// bf16 weights and activations, widened to f32. Their products are exact in f32, so fusing the addition changes nothing
// and the results are those of the scalar kernel.
struct Bf16Kernel {
  static constexpr bool kBlocksOfSix = false;

  template <int kStride, int kRows, int kHalves>
  static void block(const StripView& strip, const Panel& panel, float* out, int64_t out_stride) {
    __m256 acc[kHalves][kRows];
    QUIRE_UNROLL for (int h = 0; h < kHalves; ++h) {
      QUIRE_UNROLL for (int m = 0; m < kRows; ++m) acc[h][m] = _mm256_setzero_ps();
    }
    const uint8_t* line = strip.quants;
    const uint16_t* a = panel.bf16;
    for (int64_t k = 0; k < strip.k_padded; k += 2, line += 64, a += 2 * kStride) {
      prefetch_group<1>(strip, line);
      __m256 weights[kHalves][2];
      QUIRE_UNROLL for (int h = 0; h < kHalves; ++h) {
        weights[h][0] = first_of_pairs(load_half(line + 32 * h));
        weights[h][1] = second_of_pairs(load_half(line + 32 * h));
      }
      QUIRE_UNROLL for (int m = 0; m < kRows; ++m) {
        const __m256i pair = _mm256_set1_epi32(*reinterpret_cast<const int32_t*>(a + 2 * m));
        const __m256 first = first_of_pairs(pair);
        const __m256 second = second_of_pairs(pair);
        QUIRE_UNROLL for (int h = 0; h < kHalves; ++h) acc[h][m] = _mm256_fmadd_ps(weights[h][0], first, acc[h][m]);
        QUIRE_UNROLL for (int h = 0; h < kHalves; ++h) acc[h][m] = _mm256_fmadd_ps(weights[h][1], second, acc[h][m]);
      }
    }
    store_block(acc, out, out_stride);
  }
};

// bf16, f16 or f32 weights with f32 activations.
template <Quants kQuants>
struct FloatKernel {
  static constexpr bool kBlocksOfSix = false;

  template <int kStride, int kRows, int kHalves>
  QUIRE_INLINE static void add(const __m256 (&weights)[kHalves], const float* a, __m256 (&acc)[kHalves][kRows]) {
    QUIRE_UNROLL for (int m = 0; m < kRows; ++m) {
      const __m256 value = _mm256_set1_ps(a[m]);
      QUIRE_UNROLL for (int h = 0; h < kHalves; ++h) acc[h][m] = _mm256_fmadd_ps(weights[h], value, acc[h][m]);
    }
  }

  template <int kStride, int kRows, int kHalves>
  static void block(const StripView& strip, const Panel& panel, float* out, int64_t out_stride) {
    __m256 acc[kHalves][kRows];
    QUIRE_UNROLL for (int h = 0; h < kHalves; ++h) {
      QUIRE_UNROLL for (int m = 0; m < kRows; ++m) acc[h][m] = _mm256_setzero_ps();
    }
    const uint8_t* p = strip.quants;
    const float* a = panel.f32;
    for (int64_t k = 0; k < strip.k_padded; k += 2, a += 2 * kStride) {
      prefetch_group<1>(strip, p);
      __m256 first[kHalves], second[kHalves];
      QUIRE_UNROLL for (int h = 0; h < kHalves; ++h) {
        if constexpr (kQuants == Quants::kBF16) {
          first[h] = first_of_pairs(load_half(p + 32 * h));
          second[h] = second_of_pairs(load_half(p + 32 * h));
        } else if constexpr (kQuants == Quants::kF16) {
          first[h] = load_f16(p + 16 * h);
          second[h] = load_f16(p + 32 + 16 * h);
        } else {
          first[h] = _mm256_castsi256_ps(load_half(p + 32 * h));
          second[h] = _mm256_castsi256_ps(load_half(p + 64 + 32 * h));
        }
      }
      add<kStride, kRows, kHalves>(first, a, acc);
      add<kStride, kRows, kHalves>(second, a + kStride, acc);
      p += kQuants == Quants::kF32 ? 128 : 64;
    }
    store_block(acc, out, out_stride);
  }
};

template <class Kernel>
void linear(const TileFormat&, const StripView& strip, const Panel& panel, float* out, int64_t out_stride) {
  by_blocks<Kernel>(strip, panel, out, out_stride);
}

}  // namespace

LinearFn avx2_linear_float(const TileFormat& format, ActKind kind) {
  if (kind == ActKind::kBF16) return format.quants == Quants::kBF16 ? linear<Bf16Kernel> : nullptr;
  if (kind != ActKind::kF32) return nullptr;
  switch (format.quants) {
    case Quants::kBF16:
      return linear<FloatKernel<Quants::kBF16>>;
    case Quants::kF16:
      return linear<FloatKernel<Quants::kF16>>;
    case Quants::kF32:
      return linear<FloatKernel<Quants::kF32>>;
    default:
      return nullptr;
  }
}

}  // namespace quire::cpu
