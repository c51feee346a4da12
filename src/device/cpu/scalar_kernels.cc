// The reference kernel table: plain loops over the same formats in the same orders, for any CPU.

#include <math.h>
#include <string.h>

#include "device/cpu/kernels.h"
#include "device/cpu/pack.h"
#include "tensor/half.h"

namespace quire::cpu {
namespace {

#include "device/cpu/row_ops.inc"
// These need what stands above.
#include "device/cpu/attention_merge.inc"
#include "device/cpu/pack_i8_store.inc"
// And this.
#include "device/cpu/pack_i8.inc"

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
  strip.data =
      reinterpret_cast<const std::byte*>(format.super() ? view.super : (format.integer() ? view.scales : view.quants));
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
        if (format.mins) acc[m] = fmaf(w.min, scale * static_cast<float>(sum), acc[m]);
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

// Element (token, d) of a page's K or V.
struct PageBf16 {
  static float key(const uint8_t* page, int32_t, int64_t token, int32_t d) {
    return bf16_to_f32(load_u16(page + ((d / 2 * kPageTokens + token) * 2 + d % 2) * 2));
  }
  static float value(const uint8_t* page, int32_t dim, int64_t token, int32_t d) {
    return bf16_to_f32(
        load_u16(page + (static_cast<int64_t>(dim) * kPageTokens + (token / 2 * dim + d) * 2 + token % 2) * 2));
  }
  static float rounded(float x) { return bf16_to_f32(f32_to_bf16(x)); }
};

struct PageF32 {
  static float load(const uint8_t* p) {
    float value;
    memcpy(&value, p, sizeof value);
    return value;
  }
  static float key(const uint8_t* page, int32_t, int64_t token, int32_t d) {
    return load(page + (d * kPageTokens + token) * 4);
  }
  static float value(const uint8_t* page, int32_t dim, int64_t token, int32_t d) {
    return load(page + (static_cast<int64_t>(dim) * kPageTokens + token * dim + d) * 4);
  }
  static float rounded(float x) { return x; }
};

const uint8_t* page_of(const AttentionRows& in, int64_t token) {
  return in.kv_base + in.page_table[token / kPageTokens] * in.page_stride;
}

// One row against the keys of one tile that it sees, [first, last).
template <class Page>
void attend_tile(const AttentionRows& in, int32_t row, int64_t first, int64_t last, const AttentionState& state) {
  float weights[kKeyTile];
  float peak = state.max[row];
  for (int64_t token = first; token < last; ++token) {
    const uint8_t* page = page_of(in, token);
    float score = 0;
    for (int32_t d = 0; d < in.head_dim; ++d) {
      score += Page::rounded(in.q[row][d] * in.scale) * Page::key(page, in.head_dim_padded, token % kPageTokens, d);
    }
    if (in.softcap > 0) score = in.softcap * tanhf(score / in.softcap);
    weights[token - first] = score;
    peak = score > peak ? score : peak;
  }
  float* out = state.out + static_cast<int64_t>(row) * in.head_dim_padded;
  const float factor = state_weight(state.max[row], peak);
  float sum = 0;
  for (int32_t d = 0; d < in.head_dim_padded; ++d) out[d] *= factor;
  for (int64_t token = first; token < last; ++token) {
    const float weight = state_weight(weights[token - first], peak);
    const float stored = Page::rounded(weight);
    const uint8_t* page = page_of(in, token);
    for (int32_t d = 0; d < in.head_dim; ++d)
      out[d] += stored * Page::value(page, in.head_dim_padded, token % kPageTokens, d);
    sum += weight;
  }
  state.max[row] = peak;
  state.sum[row] = state.sum[row] * factor + sum;
}

template <class Page>
void attend(const AttentionRows& in, int64_t first, int64_t last, const AttentionState& state) {
  memset(state.out, 0, sizeof(float) * static_cast<size_t>(in.rows) * static_cast<size_t>(in.head_dim_padded));
  for (int32_t r = 0; r < in.rows; ++r) {
    state.max[r] = -1e30f;
    state.sum[r] = 0;
    const int64_t seen_last = in.position[r] + 1 < last ? in.position[r] + 1 : last;
    const int64_t window_first = in.window > 0 ? in.position[r] - in.window + 1 : 0;
    for (int64_t tile = first; tile < seen_last; tile += kKeyTile) {
      const int64_t begin = tile > window_first ? tile : window_first;
      const int64_t end = tile + kKeyTile < seen_last ? tile + kKeyTile : seen_last;
      if (begin < end) attend_tile<Page>(in, r, begin, end, state);
    }
  }
}

constexpr Kernels kScalar = {
    .name = "scalar",
    .linear = linear,
    .attend_bf16 = attend<PageBf16>,
    .attend_f32 = attend<PageF32>,
    .attend_full_bf16 = nullptr,
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

const Kernels& scalar_kernels() { return kScalar; }

}  // namespace quire::cpu
