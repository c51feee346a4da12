// AVX-512 linear kernels of E4M3 weights.

#include <immintrin.h>

#include "device/cpu/avx512_tables.h"

namespace quire::cpu {
namespace {

#include "device/cpu/avx512_linear.inc"

constexpr uint16_t kBf16Bias = 0x3c00;  // 120 in bf16's exponent: from E4M3's bias of 7 to 127

// Every 8 words: the bf16 bits of 0/8 .. 7/8 times 2^-6, what E4M3 codes with an exponent of 0 stand for. bf16 products
// take subnormals as 0, so these are looked up.
alignas(64) constexpr uint16_t kSubnormals[32] = {0x0000, 0x3b00, 0x3b80, 0x3bc0, 0x3c00, 0x3c20, 0x3c40, 0x3c60,
                                                  0x0000, 0x3b00, 0x3b80, 0x3bc0, 0x3c00, 0x3c20, 0x3c40, 0x3c60,
                                                  0x0000, 0x3b00, 0x3b80, 0x3bc0, 0x3c00, 0x3c20, 0x3c40, 0x3c60,
                                                  0x0000, 0x3b00, 0x3b80, 0x3bc0, 0x3c00, 0x3c20, 0x3c40, 0x3c60};

// E4M3 in the high byte of each word to bf16, exactly. 0x7f and 0xff become +-480.
QUIRE_INLINE __m512i to_bf16(__m512i high_bytes) {
  const __m512i fields =
      _mm512_and_si512(_mm512_srai_epi16(high_bytes, 4), _mm512_set1_epi16(static_cast<short>(0x87f0)));
  const __m512i normal = _mm512_add_epi16(fields, _mm512_set1_epi16(kBf16Bias));
  const __mmask32 subnormal = _mm512_testn_epi16_mask(high_bytes, _mm512_set1_epi16(0x7800));
  const __m512i small = _mm512_permutexvar_epi16(_mm512_srli_epi16(high_bytes, 8), _mm512_load_si512(kSubnormals));
  const __m512i sign = _mm512_and_si512(high_bytes, _mm512_set1_epi16(static_cast<short>(0x8000)));
  return _mm512_mask_blend_epi16(subnormal, normal, _mm512_or_si512(small, sign));
}

// The first or the last two bytes of each dword, in the high bytes of its words.
QUIRE_INLINE __m512i high_bytes(__m512i quad, int pair) {
  const __m128i order = pair == 0 ? _mm_setr_epi8(-1, 0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13)
                                  : _mm_setr_epi8(-1, 2, -1, 3, -1, 6, -1, 7, -1, 10, -1, 11, -1, 14, -1, 15);
  return _mm512_shuffle_epi8(quad, _mm512_broadcast_i32x4(order));
}

// bf16 activations. The sum of a group is scaled as it ends and added to what stands in `out`, which leaves the registers
// to the sums of the group.
template <class F, int kRows>
void e4m3_rows(const StripView& strip, const Panel& panel, float* out, int64_t out_stride) {
  const uint16_t* a = panel.bf16;
  StripView block = strip;
  for (int64_t k32 = 0; k32 < strip.k_padded / 32; to_next_block<F>(block, k32)) {
    prefetch_header<F>(block, k32);
    const uint8_t* lines = block.quants;
    const bool first_block = k32 == 0;
    const int64_t groups = block_end(block, k32) - k32;
    k32 += groups;
    for (int64_t index = 0; index < groups;) {
      const __m512 scale = group_scale<F>(block, index);
      const bool first = first_block && index == 0;
      const int64_t end = ((index >> block.group_shift) + 1) << block.group_shift;
      const int64_t last = end < groups ? end : groups;
      __m512 sum[kRows];
      QUIRE_UNROLL for (int m = 0; m < kRows; ++m) sum[m] = _mm512_setzero_ps();
      for (; index < last; ++index, lines += 512) {
        for (int i = 0; i < 8; ++i) {
          prefetch_group<1>(block, lines + i * 64);
          const __m512i quad = load_line(lines + i * 64);
          QUIRE_UNROLL for (int pair = 0; pair < 2; ++pair, a += 2 * kRows) {
            const __m512i weights = to_bf16(high_bytes(quad, pair));
            QUIRE_UNROLL for (int m = 0; m < kRows; ++m) sum[m] = dot_bf16(sum[m], weights, a + 2 * m);
          }
        }
      }
      QUIRE_UNROLL for (int m = 0; m < kRows; ++m) {
        float* to = out + m * out_stride;
        const __m512 before = first ? _mm512_setzero_ps() : _mm512_loadu_ps(to);
        _mm512_storeu_ps(to, _mm512_fmadd_ps(sum[m], scale, before));
      }
    }
  }
}

template <class F>
void linear_e4m3(const TileFormat&, const StripView& strip, const Panel& panel, float* out, int64_t out_stride) {
  QUIRE_FOR_PANEL_ROWS(e4m3_rows, F QUIRE_COMMA)
}

template <class F>
LinearFn integer_linear(ActKind kind) {
  if (kind == ActKind::kBF16) return linear_e4m3<F>;
  return kind == ActKind::kF32 ? linear_decoded<F> : nullptr;
}

}  // namespace

LinearFn avx512_linear_e4m3(const TileFormat& format, ActKind kind) { return first_match(E4M3Formats{}, format, kind); }

}  // namespace quire::cpu
