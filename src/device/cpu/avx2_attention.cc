// Paged attention with online softmax (FlashAttention; Dao et al., arXiv 2205.14135) for AVX2 and FMA.
//
// Tiles, pages and orders are those of avx512_attention.cc: keys in tiles of 64 at absolute multiples, that is four
// pages; all heads of a KV head are rows. A line of 16 lanes is read as two halves of 8. bf16 and f16 values are widened
// to f32 in registers, int8 to int16, where their products are exact.

#include <immintrin.h>
#include <string.h>

#include "device/cpu/avx2_tables.h"

namespace quire::cpu {
namespace {

#define QUIRE_UNROLL _Pragma("GCC unroll 16")
#define QUIRE_INLINE inline __attribute__((always_inline))

#include "device/cpu/attention_i8.inc"
#include "device/cpu/attention_tiles.inc"

constexpr float kNoKey = -1e30f;  // running maximum before the first key

QUIRE_INLINE __m256 exp_nonpositive(__m256 x) {
  const __m256 clamped = _mm256_max_ps(x, _mm256_set1_ps(-87.0f));
  const __m256 n = _mm256_round_ps(_mm256_mul_ps(clamped, _mm256_set1_ps(1.44269504f)),
                                   _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0.693359375f), clamped);
  r = _mm256_fnmadd_ps(n, _mm256_set1_ps(-2.12194440e-4f), r);
  __m256 p = _mm256_set1_ps(1.98412698e-4f);
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.38888889e-3f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(8.33333333e-3f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(4.16666667e-2f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.66666667e-1f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0.5f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f));
  // 2^n by its exponent bits: n is at least -126.
  const __m256i exponent = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23);
  // Below -87 the key weighs nothing, and a row that has seen no key yet must be rescaled by exactly 0.
  const __m256 weighs = _mm256_cmp_ps(x, _mm256_set1_ps(-87.0f), _CMP_GE_OQ);
  return _mm256_and_ps(weighs, _mm256_mul_ps(p, _mm256_castsi256_ps(exponent)));
}

// cap * tanh(x / cap).
QUIRE_INLINE __m256 soft_cap(__m256 x, float cap) {
  const __m256 sign_bit = _mm256_set1_ps(-0.0f);
  const __m256 y = _mm256_andnot_ps(sign_bit, _mm256_div_ps(x, _mm256_set1_ps(cap)));
  const __m256 e = exp_nonpositive(_mm256_mul_ps(y, _mm256_set1_ps(-2.0f)));
  const __m256 one = _mm256_set1_ps(1.0f);
  const __m256 magnitude =
      _mm256_mul_ps(_mm256_set1_ps(cap), _mm256_div_ps(_mm256_sub_ps(one, e), _mm256_add_ps(one, e)));
  return _mm256_or_ps(magnitude, _mm256_and_ps(x, sign_bit));
}

// Both reduce in one fixed tree.
QUIRE_INLINE float reduce_max(__m256 x) {
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

QUIRE_INLINE float reduce_add(__m256 x) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

// What differs between the KV types. A lane of a line holds kPerLane values of d (K) or tokens (V). load() reads a half
// line, part() takes what one multiply() needs, with one of kParts factors for a lane: queries and weights as rounded().
struct KvFloats {
  using Acc = __m256;
  static constexpr int kScaleBytes = 0;
  QUIRE_INLINE static Acc zero() { return _mm256_setzero_ps(); }
  QUIRE_INLINE static __m256i load(const uint8_t* half_line) {
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(half_line));
  }
  QUIRE_INLINE static Acc multiply(Acc acc, __m256i values, __m256i factor) {
    return _mm256_fmadd_ps(_mm256_castsi256_ps(values), _mm256_castsi256_ps(factor), acc);
  }
  // A row's products with keys, as scores.
  QUIRE_INLINE static __m256 score(Acc acc, float, const uint8_t*) { return acc; }
  // Sums of V go on from what is there, and become it.
  QUIRE_INLINE static Acc start(__m256 rescaled) { return rescaled; }
  QUIRE_INLINE static __m256 total(Acc acc, __m256, float) { return acc; }
  // Both finish what rounded() left in place, and return what a product with it must be multiplied by.
  static float finish_query(int32_t*, int32_t) { return 1.0f; }
  static float finish_weights(int32_t*, const TilePages&, int64_t) { return 1.0f; }
};

struct KvBf16 : KvFloats {
  static constexpr int kBytes = 2;
  static constexpr int kPerLane = 2;
  static constexpr int kParts = 2;
  QUIRE_INLINE static __m256i part(__m256i half_line, int index) {
    return index == 0 ? _mm256_slli_epi32(half_line, 16)
                      : _mm256_and_si256(half_line, _mm256_set1_epi32(static_cast<int>(0xffff0000u)));
  }
  // To the nearest bf16, ties to even. Infinities and NaN do not come here.
  QUIRE_INLINE static __m256i rounded(__m256 x) {
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i up = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    return part(up, 1);
  }
};

struct KvF32 : KvFloats {
  static constexpr int kBytes = 4;
  static constexpr int kPerLane = 1;
  static constexpr int kParts = 1;
  QUIRE_INLINE static __m256i part(__m256i half_line, int) { return half_line; }
  QUIRE_INLINE static __m256i rounded(__m256 x) { return _mm256_castps_si256(x); }
};

// f32 arithmetic on values that lie as f16.
struct KvF16 : KvF32 {
  static constexpr int kBytes = 2;
  QUIRE_INLINE static __m256i load(const uint8_t* half_line) {
    return _mm256_castps_si256(_mm256_cvtph_ps(_mm_load_si128(reinterpret_cast<const __m128i*>(half_line))));
  }
};

// Queries and weights are rounded to int16 with a scale per row (of weights: per row and tile), a part is a pair of them,
// and sums are integers and exact. 512 * 127 * 32767 is below 2^31.
struct KvI8 {
  using Acc = __m256i;
  static constexpr int kBytes = 1;
  static constexpr int kPerLane = 2;
  static constexpr int kParts = 1;
  static constexpr int kScaleBytes = kPageTokens * 4;
  QUIRE_INLINE static Acc zero() { return _mm256_setzero_si256(); }
  QUIRE_INLINE static __m256i load(const uint8_t* half_line) {
    return _mm256_cvtepi8_epi16(_mm_load_si128(reinterpret_cast<const __m128i*>(half_line)));
  }
  QUIRE_INLINE static __m256i part(__m256i half_line, int) { return half_line; }
  QUIRE_INLINE static Acc multiply(Acc acc, __m256i values, __m256i factor) {
    return _mm256_add_epi32(acc, _mm256_madd_epi16(values, factor));
  }
  QUIRE_INLINE static __m256i rounded(__m256 x) { return _mm256_castps_si256(x); }
  QUIRE_INLINE static __m256 score(Acc acc, float query_scale, const uint8_t* k_scales) {
    const __m256 scales = _mm256_load_ps(reinterpret_cast<const float*>(k_scales));
    return _mm256_mul_ps(_mm256_cvtepi32_ps(acc), _mm256_mul_ps(scales, _mm256_set1_ps(query_scale)));
  }
  QUIRE_INLINE static Acc start(__m256) { return zero(); }
  QUIRE_INLINE static __m256 total(Acc acc, __m256 rescaled, float weight_scale) {
    return _mm256_fmadd_ps(_mm256_cvtepi32_ps(acc), _mm256_set1_ps(weight_scale), rescaled);
  }
  // `count` floats, a multiple of 16, to pairs of int16 in place. Returns the step.
  static float finish_query(int32_t* values, int32_t count) {
    __m256 largest = _mm256_setzero_ps();
    for (int32_t i = 0; i < count; i += 8)
      largest = _mm256_max_ps(largest, _mm256_andnot_ps(_mm256_set1_ps(-0.0f), load_floats(values + i)));
    const float peak = reduce_max(largest);
    const __m256 inverse = _mm256_set1_ps(inverse_step(peak));
    for (int32_t i = 0; i < count; i += 16) {
      const __m256i low = _mm256_cvtps_epi32(_mm256_mul_ps(load_floats(values + i), inverse));
      const __m256i high = _mm256_cvtps_epi32(_mm256_mul_ps(load_floats(values + i + 8), inverse));
      // packs works on halves of 128 bits.
      const __m256i pairs = _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), 0xd8);
      _mm256_store_si256(reinterpret_cast<__m256i*>(values + i / 2), pairs);
    }
    return peak / kI16Steps;
  }
  static float finish_weights(int32_t* weights, const TilePages& tile, int64_t scales_at) {
    for (int i = 0; i < kKeyTile; i += 8) {
      const auto* scales = reinterpret_cast<const float*>(page_or_any(tile, i / kPageTokens) + scales_at);
      const __m256 w = load_floats(weights + i);
      // The scale of a free slot may be NaN.
      const __m256 weighs = _mm256_cmp_ps(w, _mm256_setzero_ps(), _CMP_GT_OQ);
      const __m256 scaled = _mm256_mul_ps(w, _mm256_load_ps(scales + i % kPageTokens));
      _mm256_store_si256(reinterpret_cast<__m256i*>(weights + i), _mm256_castps_si256(_mm256_and_ps(weighs, scaled)));
    }
    return finish_query(weights, kKeyTile);
  }

 private:
  QUIRE_INLINE static __m256 load_floats(const int32_t* from) {
    return _mm256_castsi256_ps(_mm256_load_si256(reinterpret_cast<const __m256i*>(from)));
  }
};

template <class Kv>
constexpr int64_t kHalfLine = 8 * Kv::kPerLane* Kv::kBytes;  // bytes

// Queries and weights are what multiply() takes: f32, or pairs of int16.
struct Block {
  explicit Block(const AttentionRows& rows) : in(rows) {}

  const AttentionRows& in;
  alignas(32) int32_t query[kMaxAttentionRows][kMaxHeadDim];
  alignas(32) float scores[kMaxAttentionRows][kKeyTile];
  alignas(32) int32_t weights[kMaxAttentionRows][kKeyTile];
  // What products with the rows' queries and weights are multiplied by.
  float query_scales[kMaxAttentionRows];
  float weight_scales[kMaxAttentionRows];
};

template <class Kv>
void load_query(Block& b, int row) {
  int32_t* to = b.query[row];
  for (int32_t d = 0; d < b.in.head_dim_padded; d += 8) {
    alignas(32) float x[8] = {};
    for (int32_t i = 0; i < 8 && d + i < b.in.head_dim; ++i) x[i] = b.in.q[row][d + i] * b.in.scale;
    _mm256_store_si256(reinterpret_cast<__m256i*>(to + d), Kv::rounded(_mm256_load_ps(x)));
  }
  b.query_scales[row] = Kv::finish_query(to, b.in.head_dim_padded);
}

// acc[r][v] += factor r * value v, for one part of kVectors half lines. Factors lie `stride` apart.
template <class Kv, int kRows, int kVectors>
QUIRE_INLINE void accumulate(typename Kv::Acc (&acc)[kRows][kVectors], const __m256i (&halves)[kVectors], int part,
                             const int32_t* factors, int64_t stride) {
  __m256i values[kVectors];
  QUIRE_UNROLL for (int v = 0; v < kVectors; ++v) values[v] = Kv::part(halves[v], part);
  QUIRE_UNROLL for (int r = 0; r < kRows; ++r) {
    const __m256i factor = _mm256_set1_epi32(factors[r * stride]);
    QUIRE_UNROLL for (int v = 0; v < kVectors; ++v) acc[r][v] = Kv::multiply(acc[r][v], values[v], factor);
  }
}

// Scores of kRows rows against kCount pages.
template <class Kv, int kRows, int kCount>
QUIRE_INLINE void score_pages(Block& b, const uint8_t* const* pages, int first_row, int first_page) {
  typename Kv::Acc acc[kRows][2 * kCount];
  QUIRE_UNROLL for (int r = 0; r < kRows; ++r) {
    QUIRE_UNROLL for (int v = 0; v < 2 * kCount; ++v) acc[r][v] = Kv::zero();
  }
  const int32_t* query = b.query[first_row];
  const int32_t steps = b.in.head_dim_padded / Kv::kPerLane;
  for (int32_t step = 0; step < steps; ++step, query += Kv::kParts) {
    __m256i halves[2 * kCount];
    QUIRE_UNROLL for (int v = 0; v < 2 * kCount; ++v) {
      halves[v] = Kv::load(pages[first_page + v / 2] + (2 * step + v % 2) * kHalfLine<Kv>);
    }
    QUIRE_UNROLL for (int part = 0; part < Kv::kParts; ++part) {
      accumulate<Kv>(acc, halves, part, query + part, kMaxHeadDim);
    }
  }
  QUIRE_UNROLL for (int r = 0; r < kRows; ++r) {
    QUIRE_UNROLL for (int v = 0; v < 2 * kCount; ++v) {
      const uint8_t* k_scales = pages[first_page + v / 2] + 2 * steps * kHalfLine<Kv> + v % 2 * 32;
      _mm256_store_ps(b.scores[first_row + r] + first_page * kPageTokens + v * 8,
                      Kv::score(acc[r][v], b.query_scales[first_row + r], k_scales));
    }
  }
}

template <class Kv, int kRows>
void score_rows(Block& b, const TilePages& tile, int first_row) {
  constexpr int kCount = kRows == 1 ? 2 : 1;  // a lone row has too few accumulators to keep the multipliers busy
  const uint8_t* pages[kPages];
  for (int p = 0; p < kPages; ++p) pages[p] = page_or_any(tile, p);
  for (int p = 0; p < kPages; p += kCount) score_pages<Kv, kRows, kCount>(b, pages, first_row, p);
}

// Turns a row's scores into weights; masks keys the row does not see. Returns the factor for what was summed before.
template <class Kv>
float soften_row(Block& b, const TilePages& tile, int row, int64_t tile_first, const AttentionState& state) {
  const int64_t last = b.in.position[row] - tile_first;  // inclusive, in the tile
  const int64_t first = b.in.window > 0 ? last - b.in.window + 1 : -1;
  const __m256i before = _mm256_set1_epi32(first < 0 ? -1 : static_cast<int>(first > kKeyTile ? kKeyTile : first) - 1);
  const __m256i behind = _mm256_set1_epi32(last < 0 ? 0 : static_cast<int>(last > kKeyTile ? kKeyTile : last) + 1);
  __m256i key = _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0);
  float* scores = b.scores[row];
  __m256 peak = _mm256_set1_ps(kNoKey);
  for (int i = 0; i < kKeyTile; i += 8) {
    const __m256i seen = _mm256_and_si256(_mm256_cmpgt_epi32(key, before), _mm256_cmpgt_epi32(behind, key));
    __m256 s = _mm256_load_ps(scores + i);
    if (b.in.softcap > 0) s = soft_cap(s, b.in.softcap);
    s = _mm256_blendv_ps(_mm256_set1_ps(-__builtin_inff()), s, _mm256_castsi256_ps(seen));
    peak = _mm256_max_ps(peak, s);
    _mm256_store_ps(scores + i, s);
    key = _mm256_add_epi32(key, _mm256_set1_epi32(8));
  }
  const float tile_max = reduce_max(peak);
  const float old_max = state.max[row];
  const float new_max = tile_max > old_max ? tile_max : old_max;
  __m256 sum = _mm256_setzero_ps();
  for (int i = 0; i < kKeyTile; i += 8) {
    const __m256 w = exp_nonpositive(_mm256_sub_ps(_mm256_load_ps(scores + i), _mm256_set1_ps(new_max)));
    sum = _mm256_add_ps(sum, w);
    _mm256_store_si256(reinterpret_cast<__m256i*>(b.weights[row] + i), Kv::rounded(w));
  }
  b.weight_scales[row] = Kv::finish_weights(b.weights[row], tile, v_scales<Kv>(b.in.head_dim_padded));
  const float factor = _mm256_cvtss_f32(exp_nonpositive(_mm256_set1_ps(old_max - new_max)));
  state.max[row] = new_max;
  state.sum[row] = state.sum[row] * factor + reduce_add(sum);
  return factor;
}

// out[rows][kBlocks * 16 of d] = out * factor + weights * V.
template <class Kv, int kRows, int kBlocks>
QUIRE_INLINE void weigh_rows(const Block& b, const TilePages& tile, int first_row, int32_t first_d,
                             const float* factors, const AttentionState& state) {
  const int32_t dim = b.in.head_dim_padded;
  float* out = state.out + static_cast<int64_t>(first_row) * dim + first_d;
  const auto rescaled = [&](int r, int v) __attribute__((always_inline)) {
    return _mm256_mul_ps(_mm256_loadu_ps(out + r * dim + v * 8), _mm256_set1_ps(factors[first_row + r]));
  };
  typename Kv::Acc acc[kRows][2 * kBlocks];
  QUIRE_UNROLL for (int r = 0; r < kRows; ++r) {
    QUIRE_UNROLL for (int v = 0; v < 2 * kBlocks; ++v) acc[r][v] = Kv::start(rescaled(r, v));
  }
  constexpr int kLaneBytes = Kv::kPerLane * Kv::kBytes;
  for (int p = 0; p < kPages; ++p) {
    if (tile.page[p] == nullptr) continue;
    const uint8_t* line = tile.page[p] + v_codes<Kv>(dim) + first_d * kLaneBytes;
    const int32_t* weights = b.weights[first_row] + p * kPageTokens / Kv::kPerLane * Kv::kParts;
    const int32_t whole = tile.tokens[p] / Kv::kPerLane;
    __m256i halves[2 * kBlocks];
    for (int32_t t = 0; t < whole; ++t, line += dim * kLaneBytes, weights += Kv::kParts) {
      QUIRE_UNROLL for (int v = 0; v < 2 * kBlocks; ++v) halves[v] = Kv::load(line + v * kHalfLine<Kv>);
      QUIRE_UNROLL for (int part = 0; part < Kv::kParts; ++part) {
        accumulate<Kv>(acc, halves, part, weights + part, kKeyTile);
      }
    }
    // The last V pair of a sequence may have a free slot as its second token: its bytes may be NaN, which a weight of 0
    // does not undo. Of int8 the pair is one part, and a code times 0 is 0.
    if (tile.tokens[p] % Kv::kPerLane != 0) {
      QUIRE_UNROLL for (int v = 0; v < 2 * kBlocks; ++v) halves[v] = Kv::load(line + v * kHalfLine<Kv>);
      accumulate<Kv>(acc, halves, 0, weights, kKeyTile);
    }
  }
  QUIRE_UNROLL for (int r = 0; r < kRows; ++r) {
    QUIRE_UNROLL for (int v = 0; v < 2 * kBlocks; ++v) {
      _mm256_storeu_ps(out + r * dim + v * 8, Kv::total(acc[r][v], rescaled(r, v), b.weight_scales[first_row + r]));
    }
  }
}

template <class Kv, int kRows>
void weigh(const Block& b, const TilePages& tile, int first_row, const float* factors, const AttentionState& state) {
  constexpr int kBlocks = kRows == 1 ? 2 : 1;
  int32_t d = 0;
  for (; d + 16 * kBlocks <= b.in.head_dim_padded; d += 16 * kBlocks)
    weigh_rows<Kv, kRows, kBlocks>(b, tile, first_row, d, factors, state);
  for (; d < b.in.head_dim_padded; d += 16) weigh_rows<Kv, kRows, 1>(b, tile, first_row, d, factors, state);
}

template <class Kv>
void score(Block& b, const TilePages& tile) {
  int32_t r = 0;
  for (; r + 4 <= b.in.rows; r += 4) score_rows<Kv, 4>(b, tile, r);
  if (b.in.rows - r == 3) score_rows<Kv, 3>(b, tile, r);
  if (b.in.rows - r == 2) score_rows<Kv, 2>(b, tile, r);
  if (b.in.rows - r == 1) score_rows<Kv, 1>(b, tile, r);
}

template <class Kv>
void weigh_all(const Block& b, const TilePages& tile, const float* factors, const AttentionState& state) {
  int32_t r = 0;
  for (; r + 4 <= b.in.rows; r += 4) weigh<Kv, 4>(b, tile, r, factors, state);
  if (b.in.rows - r == 3) weigh<Kv, 3>(b, tile, r, factors, state);
  if (b.in.rows - r == 2) weigh<Kv, 2>(b, tile, r, factors, state);
  if (b.in.rows - r == 1) weigh<Kv, 1>(b, tile, r, factors, state);
}

template <class Kv>
void attend(const AttentionRows& in, int64_t first, int64_t last, const AttentionState& state) {
  Block b(in);
  int64_t seen_first = in.position[0];
  for (int32_t r = 0; r < in.rows; ++r) {
    load_query<Kv>(b, r);
    const int64_t start = in.window > 0 && in.position[r] >= in.window ? in.position[r] - in.window + 1 : 0;
    seen_first = start < seen_first ? start : seen_first;
    state.max[r] = kNoKey;
    state.sum[r] = 0;
  }
  memset(state.out, 0, sizeof(float) * static_cast<size_t>(in.rows) * static_cast<size_t>(in.head_dim_padded));
  for (int64_t tile_first = first; tile_first < last; tile_first += kKeyTile) {
    if (tile_first + kKeyTile <= seen_first) continue;
    const TilePages tile = tile_pages(in, tile_first, seen_first);
    if (tile.any == nullptr) continue;
    float factors[kMaxAttentionRows];
    score<Kv>(b, tile);
    for (int32_t r = 0; r < in.rows; ++r) factors[r] = soften_row<Kv>(b, tile, r, tile_first, state);
    weigh_all<Kv>(b, tile, factors, state);
  }
}

}  // namespace

void avx2_attend_bf16(const AttentionRows& rows, int64_t first, int64_t last, const AttentionState& state) {
  attend<KvBf16>(rows, first, last, state);
}

void avx2_attend_f16(const AttentionRows& rows, int64_t first, int64_t last, const AttentionState& state) {
  attend<KvF16>(rows, first, last, state);
}

void avx2_attend_i8(const AttentionRows& rows, int64_t first, int64_t last, const AttentionState& state) {
  attend<KvI8>(rows, first, last, state);
}

void avx2_attend_f32(const AttentionRows& rows, int64_t first, int64_t last, const AttentionState& state) {
  attend<KvF32>(rows, first, last, state);
}

}  // namespace quire::cpu
