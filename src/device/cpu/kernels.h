// The kernel table of one instruction set: what the CPU device calls for one worker's share of an op.
//
// Plain data only. The sources that fill a table are compiled with their own instruction-set flags, so this header
// and they call no inline function of any header, or the linker might keep a copy that an older CPU cannot run.
// The scalar table is the reference: same formats, same orders, plain loops. Every result for a row depends on that
// row alone, never on its neighbours (docs/architecture.md, "Same output whatever the load").
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace quire::cpu {

struct TileFormat;

// What a linear reads: int8 with one f32 scale per 32 K, bf16, or f32.
enum class ActKind : uint8_t { kI8, kBF16, kF32 };

inline constexpr int kMaxPanelRows = 12;

// Up to 12 rows of activations, interleaved for the tiles: quads [k/4][rows][4] int8, pairs [k/2][rows][2] bf16, or
// [k][rows] f32. k counts to k_padded; padding is 0.
struct Panel {
  int32_t rows;
  bool power_of_two;  // all `scales` are powers of two
  const int8_t* q;
  const float* scales;         // [k/32][rows]
  const int32_t* neg_sums16;   // [k/16][rows], minus the sum of q over 16 K
  const int32_t* neg_sums32;   // [k/32][rows], minus the sum of q over 32 K
  const float* scaled_sums32;  // [k/32][rows], scale * sum of q over 32 K
  const uint16_t* bf16;
  const float* f32;
};

// The same, written by row.
struct PanelSlot {
  int32_t rows;       // of the panel
  int32_t slot;       // this row's place in it
  bool power_of_two;  // round the scale up to a power of two
  int8_t* q;
  float* scales;
  int32_t* neg_sums16;
  int32_t* neg_sums32;
  float* scaled_sums32;
  uint16_t* bf16;
  float* f32;
};

// One strip of 16 output features (tile_format.h), seen from one of its blocks.
struct StripView {
  const uint8_t* super;
  const uint8_t* scales;
  const uint8_t* mins;
  const uint8_t* quants;
  int64_t k_padded;     // of the strip
  int64_t block_k;      // K of a block, the last excepted
  int64_t block_bytes;  // from block to block, and
  int64_t super_bytes;  // from super scale to super scale
  int32_t group_shift;  // log2(group / 32) for groups of 32 and more, else 0
  int32_t prefetch;     // how far ahead of the line in use the next are fetched, bytes; 0: not at all
};

// out[row * out_stride + lane] = dot(activation row, weight row `lane`), 16 lanes. The order of every dot product:
//   integer: for each group ascending: acc = fma(float(isum), scale_w * scale_a, acc), then
//            acc = fma(min_w, scale_a * float(sum of q), acc) where there are mins
//            acc = fma(min_w, ...) likewise where there are zero points, min_w = -(scale_w * zero)
//   others:  acc = fma(w, a, acc), K ascending (pairs of K where the CPU has bf16 dot products)
using LinearFn = void (*)(const TileFormat& format, const StripView& strip, const Panel& panel, float* out,
                          int64_t out_stride);

// One (sequence, KV head): up to 32 query rows (tokens x heads of the group) against a range of keys.
inline constexpr int kMaxAttentionRows = 32;
inline constexpr int kMaxHeadDim = 512;
inline constexpr int kPageTokens = 16;
inline constexpr int kKeyTile = 64;    // keys per softmax step, at absolute multiples
inline constexpr int kKeySplit = 512;  // keys per partial result, at absolute multiples

struct AttentionRows {
  int32_t rows;
  const float* q[kMaxAttentionRows];    // [head_dim]
  int64_t position[kMaxAttentionRows];  // sees keys in (position - window, position]
  int32_t head_dim;
  int32_t head_dim_padded;  // to 16
  int64_t window;           // 0: none
  float scale;
  float softcap;  // 0: none
  // Pages: K then V of one head. bf16: K [d/2][16 tokens][2], V [8 token pairs][d][2]. f32 and f16: K [d][16],
  // V [16][d]. int8: codes as bf16, and behind those of K and those of V the f32 scale of each token, [16].
  const uint8_t* kv_base;  // of this layer and head
  int64_t page_stride;     // bytes from page to page of the pool
  const int32_t* page_table;
  int64_t kv_tokens;  // tokens stored; what lies behind them may be anything, NaN included
};

// Partial attention state of `rows` rows: running maximum, sum of exponentials, weighted V.
struct AttentionState {
  float* max;  // [rows]
  float* sum;  // [rows]
  float* out;  // [rows][head_dim_padded]
};

// A tile of an f32 matrix product.
inline constexpr int kMatMulRows = 12;
inline constexpr int kMatMulColumns = 32;

struct KvKernels {
  // Attention over keys [first, last) of one split, from a fresh state. first is a multiple of kKeySplit.
  void (*attend)(const AttentionRows& rows, int64_t first, int64_t last, const AttentionState& state);
  // One token's K and V into slot `slot` of a page. head_dim_padded - head_dim lanes become 0.
  void (*store)(const float* k, const float* v, int32_t head_dim, int32_t head_dim_padded, int32_t slot, uint8_t* page);
};

struct Kernels {
  const char* name;

  // Null: this table has no kernel for the format; the caller falls back to the scalar one and counts it.
  LinearFn (*linear)(const TileFormat& format, ActKind kind);

  // By what pages hold. f16: values beyond its range are stored as +-65504. int8: one scale per token and head, the
  // largest magnitude / 127, for K and for V; queries and weights meet the codes as int16, so that sums are exact.
  KvKernels kv_bf16;
  KvKernels kv_f16;
  KvKernels kv_i8;
  KvKernels kv_f32;
  // What online softmax is measured against: every score of a row is written to memory, all are softened, then multiplied
  // with V. `scores` holds in.rows x last floats, last rounded up to whole tiles. Null: this table has none.
  void (*attend_full_bf16)(const AttentionRows& in, int64_t last, float* scores, const AttentionState& state);
  // total = total (+) part, rows whose part saw no key unchanged.
  void (*merge)(int32_t rows, int32_t dim, const AttentionState& part, const AttentionState& total);
  // Divides by the sum, after adding a sink (a key without value, one logit a row; null: none).
  void (*finish)(int32_t rows, int32_t dim, const float* sinks, const AttentionState& total);

  void (*rms_norm)(const float* x, const float* weight, int64_t n, float eps, float* out);  // weight null: 1
  void (*pack_i8)(const float* x, int64_t first_k, int64_t n, const PanelSlot& to);         // n a multiple of 32
  // All n values of a row with one scale. n is a multiple of 32.
  void (*pack_i8_token)(const float* x, int64_t n, const PanelSlot& to);
  void (*pack_bf16)(const float* x, int64_t first_k, int64_t n, const PanelSlot& to);  // n even
  void (*pack_f32)(const float* x, int64_t first_k, int64_t n, const PanelSlot& to);
  void (*rope)(float* head, const float* cos, const float* sin, int64_t half);  // pairs (i, i + half)
  void (*silu_mul)(const float* gate, const float* up, int64_t n, float* out);
  void (*gelu_tanh_mul)(const float* gate, const float* up, int64_t n, float* out);
  void (*softcap)(float* x, int64_t n, float cap);
  // out[row][column] = sum over i < k, ascending, of a[i][row] * b[i][column], each step one fma: [12][32].
  void (*matmul_tile)(const float* a, const float* b, int64_t k, float* out);
  // log(sum(exp(x))).
  float (*log_sum_exp)(const float* x, int64_t n);
};

const Kernels& scalar_kernels();
const Kernels* avx2_kernels();     // null where the CPU lacks AVX2, FMA or F16C
const Kernels* avxvnni_kernels();  // null where it lacks AVX-VNNI too; the same results as avx2_kernels()
const Kernels* avx512_kernels();   // null where the CPU lacks AVX-512 VNNI or BF16

}  // namespace quire::cpu
