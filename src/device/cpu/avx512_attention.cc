// Paged attention with online softmax (FlashAttention; Dao et al., arXiv 2205.14135) for AVX-512 BF16.
//
// Keys are visited in tiles of 64 at absolute multiples, that is four pages. A page's K lies so that one vector holds
// one pair (bf16, int8) or one value (f16, f32) of d for its 16 tokens, and its V so that one vector holds 16 d for a
// pair of tokens or one token: neither product shuffles or sums across lanes. f16 and int8 are widened as they are
// loaded, once for up to 8 rows. All heads of a KV head are rows here, so a page is read once for all of them.

#include <immintrin.h>
#include <string.h>

#include "device/cpu/avx512_tables.h"

namespace quire::cpu {
namespace {

#include "device/cpu/attention_i8.inc"
#include "device/cpu/attention_tiles.inc"

#define QUIRE_UNROLL _Pragma("GCC unroll 16")
#define QUIRE_INLINE inline __attribute__((always_inline))
// Inlined into one large function, GCC 12 would run the loops out of registers.
#define QUIRE_APART __attribute__((noinline))

constexpr int64_t kPrefetchTiles = 2;  // how many tiles ahead pages are fetched into L2
constexpr float kNoKey = -1e30f;       // running maximum before the first key

QUIRE_INLINE __m512 exp_nonpositive(__m512 x) {
  const __m512 clamped = _mm512_max_ps(x, _mm512_set1_ps(-87.0f));
  const __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(clamped, _mm512_set1_ps(1.44269504f)), 0);
  __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375f), clamped);
  r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-2.12194440e-4f), r);
  __m512 p = _mm512_set1_ps(1.98412698e-4f);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.38888889e-3f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(8.33333333e-3f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(4.16666667e-2f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.66666667e-1f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.5f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
  // Below -87 the key weighs nothing, and a row that has seen no key yet must be rescaled by exactly 0.
  const __mmask16 weighs = _mm512_cmp_ps_mask(x, _mm512_set1_ps(-87.0f), _CMP_GE_OQ);
  return _mm512_maskz_scalef_ps(weighs, p, n);
}

// cap * tanh(x / cap).
QUIRE_INLINE __m512 soft_cap(__m512 x, float cap) {
  const __m512 y = _mm512_abs_ps(_mm512_div_ps(x, _mm512_set1_ps(cap)));
  const __m512 e = exp_nonpositive(_mm512_mul_ps(y, _mm512_set1_ps(-2.0f)));
  const __m512 one = _mm512_set1_ps(1.0f);
  const __m512 magnitude =
      _mm512_mul_ps(_mm512_set1_ps(cap), _mm512_div_ps(_mm512_sub_ps(one, e), _mm512_add_ps(one, e)));
  const __m512i sign = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(static_cast<int>(0x80000000u)));
  return _mm512_castsi512_ps(_mm512_or_si512(_mm512_castps_si512(magnitude), sign));
}

QUIRE_INLINE __m512 load_masked(const float* x, int32_t count) {
  return _mm512_maskz_loadu_ps(count >= 16 ? 0xffff : static_cast<__mmask16>((1u << count) - 1), x);
}

// What differs between the KV types. A line is 16 lanes: of tokens with kPerStep of d each in K, of d with kPerStep tokens
// each in V; load() makes it 16 dwords, multiply() adds its product with one row's query or weights of that step.
struct KvFloats {
  using Acc = __m512;
  static constexpr int kScaleBytes = 0;
  QUIRE_INLINE static Acc zero() { return _mm512_setzero_ps(); }
  QUIRE_INLINE static __m512i load(const uint8_t* line) { return _mm512_load_si512(line); }
  // A row's products with a page's keys, as scores.
  QUIRE_INLINE static __m512 score(Acc acc, float, const __m512*) { return acc; }
  // Sums of V go on from what is there, and become it.
  QUIRE_INLINE static Acc start(__m512 rescaled) { return rescaled; }
  QUIRE_INLINE static __m512 total(Acc acc, __m512, float) { return acc; }
};

struct KvBf16 : KvFloats {
  static constexpr int kBytes = 2;
  static constexpr int kPerStep = 2;  // d per K step, tokens per V step
  QUIRE_INLINE static Acc multiply(Acc acc, __m512i line, const int32_t* broadcast) {
    asm("vdpbf16ps %2%{1to16%}, %1, %0" : "+v"(acc) : "v"(line), "m"(*broadcast));
    return acc;
  }
  // The last V pair of a sequence may have a free slot as its second token: its bytes may be NaN, which 0 * does not undo.
  QUIRE_INLINE static __m512i first_only(__m512i line) { return _mm512_and_si512(line, _mm512_set1_epi32(0xffff)); }
  // 16 weights to 8 dwords of bf16 pairs.
  QUIRE_INLINE static void store_pairs(__m512 p, int32_t* to) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(to), reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(p)));
  }
  // Both return what a product with what they stored must be multiplied by.
  QUIRE_INLINE static float store_weights(const __m512 (&w)[kPages], const TilePages&, int64_t, int32_t* to) {
    QUIRE_UNROLL for (int p = 0; p < kPages; ++p) store_pairs(w[p], to + p * 8);
    return 1.0f;
  }
  static float load_query(const float* q, int32_t dim, int32_t padded, float scale, int32_t* to) {
    for (int32_t d = 0; d < padded; d += 16)
      store_pairs(_mm512_mul_ps(load_masked(q + d, dim - d), _mm512_set1_ps(scale)), to + d / 2);
    return 1.0f;
  }
};

struct KvF32 : KvFloats {
  static constexpr int kBytes = 4;
  static constexpr int kPerStep = 1;
  QUIRE_INLINE static Acc multiply(Acc acc, __m512i line, const int32_t* broadcast) {
    return _mm512_fmadd_ps(_mm512_castsi512_ps(line), _mm512_castsi512_ps(_mm512_set1_epi32(*broadcast)), acc);
  }
  QUIRE_INLINE static __m512i first_only(__m512i line) { return line; }
  QUIRE_INLINE static float store_weights(const __m512 (&w)[kPages], const TilePages&, int64_t, int32_t* to) {
    QUIRE_UNROLL for (int p = 0; p < kPages; ++p) _mm512_store_ps(to + p * 16, w[p]);
    return 1.0f;
  }
  static float load_query(const float* q, int32_t dim, int32_t padded, float scale, int32_t* to) {
    for (int32_t d = 0; d < padded; d += 16)
      _mm512_store_ps(to + d, _mm512_mul_ps(load_masked(q + d, dim - d), _mm512_set1_ps(scale)));
    return 1.0f;
  }
};

// f32 arithmetic on values that lie as f16.
struct KvF16 : KvF32 {
  static constexpr int kBytes = 2;
  QUIRE_INLINE static __m512i load(const uint8_t* line) {
    return _mm512_castps_si512(_mm512_cvtph_ps(_mm256_load_si256(reinterpret_cast<const __m256i*>(line))));
  }
};

// Codes of K and V are widened to int16, queries and weights rounded to int16 with a scale per row (of weights: per row
// and tile), so sums are integers and exact. 512 * 127 * 32767 is below 2^31.
struct KvI8 {
  using Acc = __m512i;
  static constexpr int kBytes = 1;
  static constexpr int kPerStep = 2;
  static constexpr int kScaleBytes = kPageTokens * 4;
  QUIRE_INLINE static Acc zero() { return _mm512_setzero_si512(); }
  QUIRE_INLINE static __m512i load(const uint8_t* line) {
    return _mm512_cvtepi8_epi16(_mm256_load_si256(reinterpret_cast<const __m256i*>(line)));
  }
  QUIRE_INLINE static Acc multiply(Acc acc, __m512i line, const int32_t* broadcast) {
    asm("vpdpwssd %2%{1to16%}, %1, %0" : "+v"(acc) : "v"(line), "m"(*broadcast));
    return acc;
  }
  // A free slot has weight 0, and no code times 0 is anything else.
  QUIRE_INLINE static __m512i first_only(__m512i line) { return line; }
  QUIRE_INLINE static __m512 score(Acc acc, float query_scale, const __m512* k_scales) {
    return _mm512_mul_ps(_mm512_cvtepi32_ps(acc), _mm512_mul_ps(*k_scales, _mm512_set1_ps(query_scale)));
  }
  QUIRE_INLINE static Acc start(__m512) { return zero(); }
  QUIRE_INLINE static __m512 total(Acc acc, __m512 rescaled, float weight_scale) {
    return _mm512_fmadd_ps(_mm512_cvtepi32_ps(acc), _mm512_set1_ps(weight_scale), rescaled);
  }
  QUIRE_INLINE static void store_codes(__m512 x, __m512 inverse, int32_t* to) {
    const __m512i codes = _mm512_cvtps_epi32(_mm512_mul_ps(x, inverse));
    _mm256_store_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi32_epi16(codes));
  }
  QUIRE_INLINE static float store_weights(const __m512 (&w)[kPages], const TilePages& tile, int64_t scales_at,
                                          int32_t* to) {
    __m512 x[kPages];
    QUIRE_UNROLL for (int p = 0; p < kPages; ++p) {
      // The scale of a free slot may be NaN.
      const __mmask16 weighs = _mm512_cmp_ps_mask(w[p], _mm512_setzero_ps(), _CMP_GT_OQ);
      x[p] = _mm512_maskz_mul_ps(weighs, w[p], _mm512_load_ps(page_or_any(tile, p) + scales_at));
    }
    const float peak = _mm512_reduce_max_ps(_mm512_max_ps(_mm512_max_ps(x[0], x[1]), _mm512_max_ps(x[2], x[3])));
    const __m512 inverse = _mm512_set1_ps(inverse_step(peak));
    QUIRE_UNROLL for (int p = 0; p < kPages; ++p) store_codes(x[p], inverse, to + p * 8);
    return peak / kI16Steps;
  }
  static float load_query(const float* q, int32_t dim, int32_t padded, float scale, int32_t* to) {
    __m512 largest = _mm512_setzero_ps();
    for (int32_t d = 0; d < dim; d += 16) largest = _mm512_max_ps(largest, _mm512_abs_ps(load_masked(q + d, dim - d)));
    const float peak = _mm512_reduce_max_ps(largest) * scale;
    const __m512 inverse = _mm512_set1_ps(inverse_step(peak));
    for (int32_t d = 0; d < padded; d += 16)
      store_codes(_mm512_mul_ps(load_masked(q + d, dim - d), _mm512_set1_ps(scale)), inverse, to + d / 2);
    return peak / kI16Steps;
  }
};

template <class Kv>
constexpr int64_t kLine = 16 * Kv::kPerStep* Kv::kBytes;  // bytes

template <class Kv>
struct Block {
  explicit Block(const AttentionRows& rows) : in(rows), steps(rows.head_dim_padded / Kv::kPerStep) {}

  const AttentionRows& in;
  const int32_t steps;  // K steps
  alignas(64) int32_t query[kMaxAttentionRows][kMaxHeadDim / Kv::kPerStep];
  alignas(64) float scores[kMaxAttentionRows][kKeyTile];
  alignas(64) int32_t weights[kMaxAttentionRows][kKeyTile / Kv::kPerStep];
  alignas(64) float factors[kMaxAttentionRows];   // for what was summed before this tile
  alignas(64) float sums[kMaxAttentionRows][16];  // of the weights, by lane
  // What products with the rows' queries and weights are multiplied by.
  float query_scales[kMaxAttentionRows];
  float weight_scales[kMaxAttentionRows];
};

// Rows [first_row, first_row + kRows) against kTilePages pages of the tile at a time: as many as there are registers for, so
// that each K line is loaded once for all rows.
template <class Kv, int kRows>
QUIRE_APART void score_rows(Block<Kv>& b, const TilePages& tile, int first_row) {
  constexpr int kTilePages = kRows <= 4 ? kPages : 2;
  for (int first = 0; first < kPages; first += kTilePages) {
    typename Kv::Acc s[kRows][kTilePages];
    const uint8_t* pages[kTilePages];
    QUIRE_UNROLL for (int p = 0; p < kTilePages; ++p) {
      pages[p] = page_or_any(tile, first + p);
      QUIRE_UNROLL for (int r = 0; r < kRows; ++r) s[r][p] = Kv::zero();
    }
    for (int32_t step = 0; step < b.steps; ++step) {
      QUIRE_UNROLL for (int p = 0; p < kTilePages; ++p) {
        const __m512i line = Kv::load(pages[p] + step * kLine<Kv>);
        QUIRE_UNROLL for (int r = 0; r < kRows; ++r) s[r][p] =
            Kv::multiply(s[r][p], line, &b.query[first_row + r][step]);
      }
    }
    QUIRE_UNROLL for (int p = 0; p < kTilePages; ++p) {
      const auto* k_scales = reinterpret_cast<const __m512*>(pages[p] + b.steps * kLine<Kv>);
      QUIRE_UNROLL for (int r = 0; r < kRows; ++r) {
        _mm512_store_ps(b.scores[first_row + r] + (first + p) * 16,
                        Kv::score(s[r][p], b.query_scales[first_row + r], k_scales));
      }
    }
  }
}

// Scores that count for nothing: below kNoKey, so that a row which sees no key at all gives none of them a weight.
QUIRE_INLINE __m512 masked_score() { return _mm512_set1_ps(-__builtin_inff()); }

// Caps and masks a row's scores in place. Returns the largest.
template <class Kv>
QUIRE_INLINE float mask_row(Block<Kv>& b, int row, int64_t tile_first) {
  const int64_t last = b.in.position[row] - tile_first;  // inclusive, in the tile
  const int64_t first = b.in.window > 0 ? last - b.in.window + 1 : 0;
  float* scores = b.scores[row];
  __m512 s[kPages];
  QUIRE_UNROLL for (int p = 0; p < kPages; ++p) {
    s[p] = _mm512_load_ps(scores + p * 16);
    if (b.in.softcap > 0) s[p] = soft_cap(s[p], b.in.softcap);
  }
  if (first > 0 || last < kKeyTile - 1 || b.in.softcap > 0) {
    const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i from = _mm512_set1_epi32(first < 0 ? 0 : (first > kKeyTile ? kKeyTile : static_cast<int32_t>(first)));
    const __m512i to = _mm512_set1_epi32(last < 0 ? -1 : (last > kKeyTile ? kKeyTile : static_cast<int32_t>(last)));
    QUIRE_UNROLL for (int p = 0; p < kPages; ++p) {
      const __m512i key = _mm512_add_epi32(lane, _mm512_set1_epi32(p * 16));
      const __mmask16 seen = _mm512_cmple_epi32_mask(key, to) & _mm512_cmpge_epi32_mask(key, from);
      s[p] = _mm512_mask_mov_ps(masked_score(), seen, s[p]);
      _mm512_store_ps(scores + p * 16, s[p]);
    }
  }
  return _mm512_reduce_max_ps(_mm512_max_ps(_mm512_max_ps(s[0], s[1]), _mm512_max_ps(s[2], s[3])));
}

// Turns the scores of a tile into weights and sets each row's factor for what was summed before. One pass over all rows
// for each part of the work: the steps of a single row wait for each other, those of different rows do not.
template <class Kv>
QUIRE_APART void soften(Block<Kv>& b, const TilePages& tile, int64_t tile_first, const AttentionState& state) {
  alignas(64) float old_max[kMaxAttentionRows];
  alignas(64) float new_max[kMaxAttentionRows];
  for (int32_t r = 0; r < b.in.rows; ++r) {
    const float tile_max = mask_row(b, r, tile_first);
    old_max[r] = state.max[r];
    new_max[r] = tile_max > old_max[r] ? tile_max : old_max[r];
    state.max[r] = new_max[r];
  }
  for (int32_t r = 0; r < b.in.rows; r += 16) {
    const __m512 change = _mm512_sub_ps(_mm512_load_ps(old_max + r), _mm512_load_ps(new_max + r));
    _mm512_store_ps(b.factors + r, exp_nonpositive(change));
  }
  for (int32_t r = 0; r < b.in.rows; ++r) {
    const __m512 max = _mm512_set1_ps(new_max[r]);
    __m512 w[kPages];
    QUIRE_UNROLL for (int p = 0; p < kPages; ++p) {
      w[p] = exp_nonpositive(_mm512_sub_ps(_mm512_load_ps(b.scores[r] + p * 16), max));
    }
    b.weight_scales[r] = Kv::store_weights(w, tile, v_scales<Kv>(b.in.head_dim_padded), b.weights[r]);
    const __m512 total = _mm512_add_ps(_mm512_add_ps(w[0], w[1]), _mm512_add_ps(w[2], w[3]));
    _mm512_store_ps(b.sums[r], _mm512_fmadd_ps(_mm512_load_ps(b.sums[r]), _mm512_set1_ps(b.factors[r]), total));
  }
}

// out[rows][kBlocks * 16 of d] = out * factor + weights * V.
template <class Kv, int kRows, int kBlocks>
QUIRE_APART void weigh_rows(const Block<Kv>& b, const TilePages& tile, int first_row, int32_t first_d,
                            const AttentionState& state) {
  const int32_t dim = b.in.head_dim_padded;
  float* out = state.out + static_cast<int64_t>(first_row) * dim + first_d;
  const auto rescaled = [&](int r, int d) __attribute__((always_inline)) {
    return _mm512_mul_ps(_mm512_loadu_ps(out + r * dim + d * 16), _mm512_set1_ps(b.factors[first_row + r]));
  };
  typename Kv::Acc o[kRows][kBlocks];
  QUIRE_UNROLL for (int r = 0; r < kRows; ++r) {
    QUIRE_UNROLL for (int d = 0; d < kBlocks; ++d) o[r][d] = Kv::start(rescaled(r, d));
  }
  constexpr int kLaneBytes = Kv::kPerStep * Kv::kBytes;
  for (int p = 0; p < kPages; ++p) {
    if (tile.page[p] == nullptr) continue;
    const uint8_t* v = tile.page[p] + v_codes<Kv>(dim) + first_d * kLaneBytes;
    const int32_t* w = b.weights[first_row] + p * kPageTokens / Kv::kPerStep;
    const int32_t steps = (tile.tokens[p] + Kv::kPerStep - 1) / Kv::kPerStep;
    const int32_t whole = tile.tokens[p] / Kv::kPerStep;
    for (int32_t t = 0; t < steps; ++t, v += dim * kLaneBytes, ++w) {
      QUIRE_UNROLL for (int d = 0; d < kBlocks; ++d) {
        __m512i line = Kv::load(v + d * kLine<Kv>);
        if (t >= whole) line = Kv::first_only(line);
        QUIRE_UNROLL for (int r = 0; r < kRows; ++r) o[r][d] =
            Kv::multiply(o[r][d], line, w + r * (kKeyTile / Kv::kPerStep));
      }
    }
  }
  QUIRE_UNROLL for (int r = 0; r < kRows; ++r) {
    QUIRE_UNROLL for (int d = 0; d < kBlocks; ++d) {
      _mm512_storeu_ps(out + r * dim + d * 16, Kv::total(o[r][d], rescaled(r, d), b.weight_scales[first_row + r]));
    }
  }
}

template <class Kv, int kRows>
void weigh(const Block<Kv>& b, const TilePages& tile, int first_row, const AttentionState& state) {
  constexpr int kBlocks = kRows <= 6 ? 4 : 2;
  int32_t d = 0;
  for (; d + kBlocks * 16 <= b.in.head_dim_padded; d += kBlocks * 16)
    weigh_rows<Kv, kRows, kBlocks>(b, tile, first_row, d, state);
  for (; d < b.in.head_dim_padded; d += 16) weigh_rows<Kv, kRows, 1>(b, tile, first_row, d, state);
}

// The part [from, to) of every page of the tile that begins at token `tile_first`, into L2.
template <class Kv>
void prefetch_tile(const AttentionRows& in, int64_t tile_first, int64_t from, int64_t to) {
  for (int64_t token = tile_first; token < tile_first + kKeyTile && token < in.kv_tokens; token += kPageTokens) {
    const uint8_t* page = in.kv_base + in.page_table[token / kPageTokens] * in.page_stride;
    for (int64_t at = from; at < to; at += 64) _mm_prefetch(page + at, _MM_HINT_T1);
  }
}

// Calls body<rows>(first_row) for runs of at most kMaxRunRows rows.
constexpr int32_t kMaxRunRows = 8;

#define QUIRE_FOR_ROW_RUNS(rows, kernel, ...)                    \
  for (int32_t first = 0; first < (rows);) {                     \
    const int32_t left = (rows)-first;                           \
    const int32_t run = left < kMaxRunRows ? left : kMaxRunRows; \
    switch (run) {                                               \
      case 1:                                                    \
        kernel<Kv, 1>(b, tile, first, ##__VA_ARGS__);            \
        break;                                                   \
      case 2:                                                    \
        kernel<Kv, 2>(b, tile, first, ##__VA_ARGS__);            \
        break;                                                   \
      case 3:                                                    \
        kernel<Kv, 3>(b, tile, first, ##__VA_ARGS__);            \
        break;                                                   \
      case 4:                                                    \
        kernel<Kv, 4>(b, tile, first, ##__VA_ARGS__);            \
        break;                                                   \
      case 5:                                                    \
        kernel<Kv, 5>(b, tile, first, ##__VA_ARGS__);            \
        break;                                                   \
      case 6:                                                    \
        kernel<Kv, 6>(b, tile, first, ##__VA_ARGS__);            \
        break;                                                   \
      case 7:                                                    \
        kernel<Kv, 7>(b, tile, first, ##__VA_ARGS__);            \
        break;                                                   \
      default:                                                   \
        kernel<Kv, 8>(b, tile, first, ##__VA_ARGS__);            \
        break;                                                   \
    }                                                            \
    first += run;                                                \
  }

int64_t first_key_seen(const AttentionRows& in) {
  int64_t seen_first = in.position[0];
  for (int32_t r = 0; r < in.rows; ++r) {
    const int64_t start = in.window > 0 && in.position[r] >= in.window ? in.position[r] - in.window + 1 : 0;
    seen_first = start < seen_first ? start : seen_first;
  }
  return seen_first;
}

template <class Kv>
void attend(const AttentionRows& in, int64_t first_key, int64_t last_key, const AttentionState& state) {
  Block<Kv> b(in);
  const int64_t seen_first = first_key_seen(in);
  for (int32_t r = 0; r < in.rows; ++r) {
    b.query_scales[r] = Kv::load_query(in.q[r], in.head_dim, in.head_dim_padded, in.scale, b.query[r]);
    state.max[r] = kNoKey;
    _mm512_store_ps(b.sums[r], _mm512_setzero_ps());
  }
  memset(state.out, 0, sizeof(float) * static_cast<size_t>(in.rows) * static_cast<size_t>(in.head_dim_padded));
  const int64_t half_page = v_codes<Kv>(in.head_dim_padded);
  for (int64_t tile_first = first_key; tile_first < last_key; tile_first += kKeyTile) {
    if (tile_first + kKeyTile <= seen_first) continue;
    const TilePages tile = tile_pages(in, tile_first, seen_first);
    if (tile.any == nullptr) continue;
    const int64_t ahead = tile_first + kPrefetchTiles * kKeyTile;
    prefetch_tile<Kv>(in, ahead, 0, half_page);
    QUIRE_FOR_ROW_RUNS(in.rows, score_rows)
    soften(b, tile, tile_first, state);
    prefetch_tile<Kv>(in, ahead, half_page, 2 * half_page);
    QUIRE_FOR_ROW_RUNS(in.rows, weigh, state)
  }
  for (int32_t r = 0; r < in.rows; ++r) state.sum[r] = _mm512_reduce_add_ps(_mm512_load_ps(b.sums[r]));
}

template <class Kv>
void attend_full(const AttentionRows& in, int64_t last_key, float* scores, const AttentionState& state) {
  Block<Kv> b(in);
  const int64_t seen_first = first_key_seen(in);
  const int64_t first_tile = seen_first / kKeyTile * kKeyTile;
  const int64_t stride = (last_key - first_tile + kKeyTile - 1) / kKeyTile * kKeyTile;
  const size_t tile_bytes = sizeof(float) * kKeyTile;
  for (int32_t r = 0; r < in.rows; ++r)
    b.query_scales[r] = Kv::load_query(in.q[r], in.head_dim, in.head_dim_padded, in.scale, b.query[r]);
  for (int64_t tile_first = first_tile; tile_first < last_key; tile_first += kKeyTile) {
    const TilePages tile = tile_pages(in, tile_first, seen_first);
    QUIRE_FOR_ROW_RUNS(in.rows, score_rows)
    for (int32_t r = 0; r < in.rows; ++r) {
      mask_row(b, r, tile_first);
      memcpy(scores + r * stride + tile_first - first_tile, b.scores[r], tile_bytes);
    }
  }
  for (int32_t r = 0; r < in.rows; ++r) {
    float* row = scores + r * stride;
    __m512 peak = _mm512_set1_ps(kNoKey);
    for (int64_t k = 0; k < stride; k += 16) peak = _mm512_max_ps(peak, _mm512_loadu_ps(row + k));
    state.max[r] = _mm512_reduce_max_ps(peak);
    __m512 sum = _mm512_setzero_ps();
    for (int64_t k = 0; k < stride; k += 16) {
      const __m512 w = exp_nonpositive(_mm512_sub_ps(_mm512_loadu_ps(row + k), _mm512_set1_ps(state.max[r])));
      _mm512_storeu_ps(row + k, w);
      sum = _mm512_add_ps(sum, w);
    }
    state.sum[r] = _mm512_reduce_add_ps(sum);
    b.factors[r] = 1;
  }
  memset(state.out, 0, sizeof(float) * static_cast<size_t>(in.rows) * static_cast<size_t>(in.head_dim_padded));
  for (int64_t tile_first = first_tile; tile_first < last_key; tile_first += kKeyTile) {
    const TilePages tile = tile_pages(in, tile_first, seen_first);
    for (int32_t r = 0; r < in.rows; ++r) {
      __m512 w[kPages];
      for (int p = 0; p < kPages; ++p)
        w[p] = _mm512_loadu_ps(scores + r * stride + tile_first - first_tile + p * kPageTokens);
      b.weight_scales[r] = Kv::store_weights(w, tile, v_scales<Kv>(in.head_dim_padded), b.weights[r]);
    }
    QUIRE_FOR_ROW_RUNS(in.rows, weigh, state)
  }
}

}  // namespace

void avx512_attend_bf16(const AttentionRows& rows, int64_t first, int64_t last, const AttentionState& state) {
  attend<KvBf16>(rows, first, last, state);
}

void avx512_attend_full_bf16(const AttentionRows& in, int64_t last, float* scores, const AttentionState& state) {
  attend_full<KvBf16>(in, last, scores, state);
}

void avx512_attend_f16(const AttentionRows& rows, int64_t first, int64_t last, const AttentionState& state) {
  attend<KvF16>(rows, first, last, state);
}

void avx512_attend_i8(const AttentionRows& rows, int64_t first, int64_t last, const AttentionState& state) {
  attend<KvI8>(rows, first, last, state);
}

void avx512_attend_f32(const AttentionRows& rows, int64_t first, int64_t last, const AttentionState& state) {
  attend<KvF32>(rows, first, last, state);
}

}  // namespace quire::cpu
