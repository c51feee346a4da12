// The reference kernel table: plain loops over the same formats in the same orders, for any CPU.

#include <math.h>
#include <string.h>

#include "device/cpu/kernels.h"
#include "device/cpu/pack.h"
#include "tensor/half.h"

namespace quire::cpu {
namespace {

#include "device/cpu/attention_i8.inc"
#include "device/cpu/row_ops.inc"
// These need what stands above.
#include "device/cpu/attention_merge.inc"
#include "device/cpu/pack_i8_store.inc"
// And these.
#include "device/cpu/pack_i8.inc"
#include "device/cpu/pack_i8_token.inc"

// One strip seen through pack.h's accessors, which know every layout.
struct Strip {
  PackedMatrix matrix;
  const std::byte* data;
};

Strip strip_of(const TileFormat& format, const StripView& view) {
  Strip strip;
  strip.matrix.format = format;
  strip.matrix.k = view.k_padded;
  strip.matrix.layout = strip_layout(format, view.k_padded);
  strip.data = reinterpret_cast<const std::byte*>(view.super);
  return strip;
}

void linear_i8(const TileFormat& format, const StripView& view, const Panel& panel, float* out, int64_t out_stride) {
  const Strip strip = strip_of(format, view);
  const int64_t part = format.group == 16 ? 16 : 32;
  for (int64_t lane = 0; lane < kStripRows; ++lane) {
    float acc[kMaxPanelRows] = {};
    for (int64_t first = 0; first < view.k_padded; first += part) {
      const ScaleMin w = strip_scale(strip.matrix, strip.data, lane, first / format.group);
      int quants[32];
      for (int64_t i = 0; i < part; ++i)
        quants[i] = strip_quant(strip.matrix, strip.data, lane, first + i) - format.zero;
      for (int m = 0; m < panel.rows; ++m) {
        int isum = 0;
        int sum = 0;
        for (int64_t i = 0; i < part; ++i) {
          const int a = panel.q[(((first + i) / 4) * panel.rows + m) * 4 + (first + i) % 4];
          isum += quants[i] * a;
          sum += a;
        }
        const float scale = panel.scales[first / 32 * panel.rows + m];
        acc[m] = fmaf(static_cast<float>(isum), w.scale * scale, acc[m]);
        if (format.mins || format.zeros) acc[m] = fmaf(w.min, scale * static_cast<float>(sum), acc[m]);
      }
    }
    for (int m = 0; m < panel.rows; ++m) out[m * out_stride + lane] = acc[m];
  }
}

float float_activation(const Panel& panel, ActKind kind, int64_t k, int m) {
  if (kind == ActKind::kF32) return panel.f32[k * panel.rows + m];
  return bf16_to_f32(panel.bf16[(k / 2 * panel.rows + m) * 2 + k % 2]);
}

template <ActKind kKind>
void linear_decoded(const TileFormat& format, const StripView& view, const Panel& panel, float* out,
                    int64_t out_stride) {
  Strip strip = strip_of(format, view);
  strip.matrix.data = strip.data;
  constexpr int64_t kPiece = 256;
  float weights[kPiece];
  for (int64_t lane = 0; lane < kStripRows; ++lane) {
    float acc[kMaxPanelRows] = {};
    for (int64_t first = 0; first < view.k_padded; first += kPiece) {
      const int64_t n = view.k_padded - first < kPiece ? view.k_padded - first : kPiece;
      decode_strip_row(strip.matrix, strip.data, lane, first, n, weights);
      for (int m = 0; m < panel.rows; ++m) {
        for (int64_t i = 0; i < n; ++i) acc[m] += weights[i] * float_activation(panel, kKind, first + i, m);
      }
    }
    for (int m = 0; m < panel.rows; ++m) out[m * out_stride + lane] = acc[m];
  }
}

LinearFn linear(const TileFormat& format, ActKind kind) {
  if (kind == ActKind::kI8) return format.integer() ? linear_i8 : nullptr;
  return kind == ActKind::kF32 ? linear_decoded<ActKind::kF32> : linear_decoded<ActKind::kBF16>;
}

float load_f32_at(const uint8_t* p) {
  float value;
  memcpy(&value, p, sizeof value);
  return value;
}

// What a page holds: element (token, d) of its K or V, and a token's scale of them. round() makes n floats, of a query or
// weights, what elements are multiplied with, and returns the factor of the products. Sums are Elements too.
struct PageFloats {
  using Element = float;
  static float key_scale(const uint8_t*, int32_t, int64_t) { return 1.0f; }
  static float value_scale(const uint8_t*, int32_t, int64_t) { return 1.0f; }
  // Sums of V go on from what is there, and become it.
  static Element start(float rescaled) { return rescaled; }
  static float total(Element sum, float, float) { return sum; }
};

struct PageBf16 : PageFloats {
  static Element key(const uint8_t* page, int32_t, int64_t token, int32_t d) {
    return bf16_to_f32(load_u16(page + ((d / 2 * kPageTokens + token) * 2 + d % 2) * 2));
  }
  static Element value(const uint8_t* page, int32_t dim, int64_t token, int32_t d) {
    return bf16_to_f32(
        load_u16(page + (static_cast<int64_t>(dim) * kPageTokens + (token / 2 * dim + d) * 2 + token % 2) * 2));
  }
  static float round(const float* x, int64_t n, Element* to) {
    for (int64_t i = 0; i < n; ++i) to[i] = bf16_to_f32(f32_to_bf16(x[i]));
    return 1.0f;
  }
};

struct PageF32 : PageFloats {
  static Element key(const uint8_t* page, int32_t, int64_t token, int32_t d) {
    return load_f32_at(page + (d * kPageTokens + token) * 4);
  }
  static Element value(const uint8_t* page, int32_t dim, int64_t token, int32_t d) {
    return load_f32_at(page + (static_cast<int64_t>(dim) * kPageTokens + token * dim + d) * 4);
  }
  static float round(const float* x, int64_t n, Element* to) {
    for (int64_t i = 0; i < n; ++i) to[i] = x[i];
    return 1.0f;
  }
};

struct PageF16 : PageF32 {
  static Element key(const uint8_t* page, int32_t, int64_t token, int32_t d) {
    return load_f16(page + (d * kPageTokens + token) * 2);
  }
  static Element value(const uint8_t* page, int32_t dim, int64_t token, int32_t d) {
    return load_f16(page + (static_cast<int64_t>(dim) * kPageTokens + token * dim + d) * 2);
  }
};

struct PageI8 {
  using Element = int32_t;
  static constexpr int64_t kScaleBytes = kPageTokens * 4;
  static int64_t code_bytes(int32_t dim) { return int64_t{dim} * kPageTokens; }
  static Element key(const uint8_t* page, int32_t, int64_t token, int32_t d) {
    return static_cast<int8_t>(page[(d / 2 * kPageTokens + token) * 2 + d % 2]);
  }
  static Element value(const uint8_t* page, int32_t dim, int64_t token, int32_t d) {
    return static_cast<int8_t>(page[code_bytes(dim) + kScaleBytes + (token / 2 * dim + d) * 2 + token % 2]);
  }
  static Element start(float) { return 0; }
  static float total(Element sum, float rescaled, float scale) { return rescaled + static_cast<float>(sum) * scale; }
  static float key_scale(const uint8_t* page, int32_t dim, int64_t token) {
    return load_f32_at(page + code_bytes(dim) + token * 4);
  }
  static float value_scale(const uint8_t* page, int32_t dim, int64_t token) {
    return load_f32_at(page + 2 * code_bytes(dim) + kScaleBytes + token * 4);
  }
  static float round(const float* x, int64_t n, Element* to) {
    float peak = 0;
    for (int64_t i = 0; i < n; ++i) peak = fabsf(x[i]) > peak ? fabsf(x[i]) : peak;
    const float inverse = inverse_step(peak);
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<Element>(lrintf(x[i] * inverse));
    return peak / kI16Steps;
  }
};

const uint8_t* page_of(const AttentionRows& in, int64_t token) {
  return in.kv_base + in.page_table[token / kPageTokens] * in.page_stride;
}

// A row's query as the page's type wants it.
template <class Page>
struct Query {
  Query(const AttentionRows& in, int32_t row) {
    float scaled[kMaxHeadDim];
    for (int32_t d = 0; d < in.head_dim; ++d) scaled[d] = in.q[row][d] * in.scale;
    scale = Page::round(scaled, in.head_dim, values);
  }
  typename Page::Element values[kMaxHeadDim];
  float scale;
};

// One row against the keys of one tile that it sees, [first, last).
template <class Page>
void attend_tile(const AttentionRows& in, int32_t row, const Query<Page>& query, int64_t first, int64_t last,
                 const AttentionState& state) {
  const int32_t dim = in.head_dim_padded;
  float weights[kKeyTile];
  float peak = state.max[row];
  for (int64_t token = first; token < last; ++token) {
    const uint8_t* page = page_of(in, token);
    const int64_t slot = token % kPageTokens;
    typename Page::Element sum = 0;
    for (int32_t d = 0; d < in.head_dim; ++d) sum += query.values[d] * Page::key(page, dim, slot, d);
    float score = static_cast<float>(sum) * (Page::key_scale(page, dim, slot) * query.scale);
    if (in.softcap > 0) score = in.softcap * tanhf(score / in.softcap);
    weights[token - first] = score;
    peak = score > peak ? score : peak;
  }
  const float factor = state_weight(state.max[row], peak);
  float sum = 0;
  float scaled[kKeyTile];
  for (int64_t token = first; token < last; ++token) {
    const float weight = state_weight(weights[token - first], peak);
    scaled[token - first] = weight * Page::value_scale(page_of(in, token), dim, token % kPageTokens);
    sum += weight;
  }
  typename Page::Element rounded[kKeyTile];
  const float weight_scale = Page::round(scaled, last - first, rounded);
  float* out = state.out + static_cast<int64_t>(row) * dim;
  typename Page::Element totals[kMaxHeadDim];
  for (int32_t d = 0; d < in.head_dim; ++d) totals[d] = Page::start(out[d] * factor);
  for (int64_t token = first; token < last; ++token) {
    const uint8_t* page = page_of(in, token);
    for (int32_t d = 0; d < in.head_dim; ++d)
      totals[d] += rounded[token - first] * Page::value(page, dim, token % kPageTokens, d);
  }
  for (int32_t d = 0; d < in.head_dim; ++d) out[d] = Page::total(totals[d], out[d] * factor, weight_scale);
  state.max[row] = peak;
  state.sum[row] = state.sum[row] * factor + sum;
}

template <class Page>
void attend(const AttentionRows& in, int64_t first, int64_t last, const AttentionState& state) {
  memset(state.out, 0, sizeof(float) * static_cast<size_t>(in.rows) * static_cast<size_t>(in.head_dim_padded));
  for (int32_t r = 0; r < in.rows; ++r) {
    const Query<Page> query(in, r);
    state.max[r] = -1e30f;
    state.sum[r] = 0;
    const int64_t seen_last = in.position[r] + 1 < last ? in.position[r] + 1 : last;
    const int64_t window_first = in.window > 0 ? in.position[r] - in.window + 1 : 0;
    for (int64_t tile = first; tile < seen_last; tile += kKeyTile) {
      const int64_t begin = tile > window_first ? tile : window_first;
      const int64_t end = tile + kKeyTile < seen_last ? tile + kKeyTile : seen_last;
      if (begin < end) attend_tile<Page>(in, r, query, begin, end, state);
    }
  }
}

void matmul_tile(const float* a, const float* b, int64_t k, float* out) {
  for (int row = 0; row < kMatMulRows; ++row) {
    for (int column = 0; column < kMatMulColumns; ++column) {
      float sum = 0;
      for (int64_t i = 0; i < k; ++i) sum = fmaf(a[i * kMatMulRows + row], b[i * kMatMulColumns + column], sum);
      out[row * kMatMulColumns + column] = sum;
    }
  }
}

constexpr Kernels kScalar = {
    .name = "scalar",
    .linear = linear,
    .kv_bf16 = {attend<PageBf16>, store_kv_bf16},
    .kv_f16 = {attend<PageF16>, store_kv_f16},
    .kv_i8 = {attend<PageI8>, store_kv_i8},
    .kv_f32 = {attend<PageF32>, store_kv_f32},
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

}  // namespace

const Kernels& scalar_kernels() { return kScalar; }

}  // namespace quire::cpu
