// The operations around matrix products. Strips of 16 features are dealt to workers; what follows a product element by
// element or head by head (bias, rope, the residual, the activation function) happens on the tile while it is in L1.

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <memory>

#include "base/check.h"
#include "device/cpu/cpu_device.h"
#include "device/cpu/kv_page.h"

namespace quire::cpu {
namespace {

// Weights that one worker takes at a time: enough to hide the dealing, little enough to share the last ones.
constexpr int64_t kChunkBytes = 64 << 10;
constexpr int64_t kPiecesPerWorker = 8;  // at least, so that a small matrix is shared evenly too

// What one worker reads of one matrix before it turns to the other, where two are read in turns (gate and up): hardware that
// follows a stream of lines starts anew at each turn.
constexpr int64_t kRunBytes = 128 << 10;
constexpr int64_t kFetchBytes = 2048;  // of the next run, while the current one is read

// How far ahead weights are prefetched: for one row so that hardware finds its pace, for more because what is computed between
// two lines takes longer than hardware looks ahead. Distances that are tried, for one row and for more, the usual ones first; 0
// leaves it to the hardware. Which is best depends on the latency and the width of the memory, but where that is busy all look
// alike: another must gain this much.
constexpr std::array<std::array<int32_t, 4>, 2> kPrefetchBytes = {{{1024, 0, 4096, 16384}, {8192, 1024, 4096, 16384}}};
constexpr std::array<int64_t, 2> kTuneRows = {1, 8};
constexpr double kWorthAnotherDistance = 0.9;
constexpr int64_t kTuneBytes = int64_t{24} << 20;
constexpr int kTuneRounds = 4;

struct alignas(kLineBytes) CacheLine {
  std::byte bytes[kLineBytes];
};

void add_bias(float* values, const float* bias, int64_t n) {
  if (bias == nullptr) return;
  for (int64_t i = 0; i < n; ++i) values[i] += bias[i];
}

}  // namespace

struct CpuDevice::Linear {
  PackedMatrix matrix;
  LinearFn kernel = nullptr;
  int32_t group_shift = 0;
  std::array<int32_t, 2> prefetch_bytes{};  // for one row, and for more

  int64_t strips() const { return strip_count(matrix.n); }

  // Brings the first lines of a strip near.
  void fetch(int64_t strip) const {
    if (strip >= strips()) return;
    const std::byte* line = matrix.strip(strip);
    const int64_t bytes = std::min(kFetchBytes, matrix.layout.bytes);
    for (int64_t at = 0; at < bytes; at += kLineBytes) __builtin_prefetch(line + at, 0, 2);
  }

  // tile[row * stride + lane] = dot(row of the panel, feature 16 * strip + lane).
  void multiply(int64_t strip, const Panel& panel, float* tile, int64_t stride) const {
    const auto* base = reinterpret_cast<const uint8_t*>(matrix.strip(strip));
    StripView view{};
    view.super = base;
    view.scales = base + matrix.layout.block_at(0);
    view.mins = view.scales + matrix.layout.mins;
    view.quants = view.scales + matrix.layout.quants;
    view.k_padded = matrix.layout.k_padded;
    view.block_k = matrix.layout.block_k;
    view.block_bytes = matrix.layout.block_bytes;
    view.super_bytes = matrix.layout.super_bytes;
    view.group_shift = group_shift;
    view.prefetch = prefetch_bytes[panel.rows > 1 ? 1 : 0];
    kernel(matrix.format, view, panel, tile, stride);
  }
};

CpuDevice::Linear CpuDevice::prepare(const LinearWeight& weight) {
  Linear result;
  result.matrix.format = tile_format(weight.type);
  result.matrix.layout = strip_layout(result.matrix.format, weight.k);
  result.matrix.n = weight.n;
  result.matrix.k = weight.k;
  result.matrix.data = weight.data;
  for (int32_t group = result.matrix.format.group; group > kActGroup; group /= 2) ++result.group_shift;
  result.prefetch_bytes = prefetch_bytes_;
  const ActKind kind = sizes_.act_kind(weight.type);
  result.kernel = kernels_.linear(result.matrix.format, kind);
  if (result.kernel == nullptr) {
    ++scalar_fallbacks_;
    result.kernel = scalar_kernels().linear(result.matrix.format, kind);
  }
  return result;
}

template <typename Take>
void CpuDevice::for_tiles(const CpuLinearInput& in, const Linear& weight, Take&& take) {
  const int64_t evenly = weight.strips() / (kPiecesPerWorker * pool_.size());
  const int64_t grain = std::max<int64_t>(1, std::min(kChunkBytes / weight.matrix.layout.bytes, evenly));
  pool_.parallel_for(weight.strips(), grain, [&](int64_t begin, int64_t end, int) {
    alignas(64) float tile[kMaxPanelRows * kStripRows];
    for (int64_t p = 0; p < in.panels(); ++p) {
      const Panel panel = in.panel(p);
      for (int64_t strip = begin; strip < end; ++strip) {
        weight.multiply(strip, panel, tile, kStripRows);
        const int64_t feature = strip * kStripRows;
        take(in.panel_first_row(p), panel.rows, feature, std::min(kStripRows, weight.matrix.n - feature), tile);
      }
    }
  });
}

void CpuDevice::linear(const LinearInput& in, const LinearWeight& weight, float* out) {
  for_tiles(input_of(in, weight, 0), prepare(weight),
            [&](int64_t first_row, int32_t rows, int64_t feature, int64_t features, const float* tile) {
              float* to = out + first_row * weight.n + feature;
              for (int32_t m = 0; m < rows; ++m) std::copy_n(tile + m * kStripRows, features, to + m * weight.n);
            });
}

void CpuDevice::project(const ProjectArgs& args) {
  const int64_t n = args.weight.n;
  const bool after_norm = args.post_norm.weight != nullptr;
  for_tiles(input_of(*args.in, args.weight, 0), prepare(args.weight),
            [&](int64_t first_row, int32_t rows, int64_t feature, int64_t features, float* tile) {
              const float* bias = args.bias == nullptr ? nullptr : args.bias + feature;
              for (int32_t m = 0; m < rows; ++m) {
                float* add = tile + m * kStripRows;
                add_bias(add, bias, features);
                const int64_t at = (first_row + m) * n + feature;
                if (after_norm) {
                  std::copy_n(add, features, args.partial + at);
                } else {
                  for (int64_t i = 0; i < features; ++i) args.x[at + i] += add[i];
                }
              }
            });
  if (!after_norm && args.next == nullptr) return;
  pool_.parallel_for(args.rows, 4, [&](int64_t begin, int64_t end, int worker) {
    float* normed = scratch(worker, n);
    for (int64_t row = begin; row < end; ++row) {
      float* x = args.x + row * n;
      if (after_norm) {
        kernels_.rms_norm(args.partial + row * n, args.post_norm.weight, n, args.post_norm.eps, normed);
        for (int64_t i = 0; i < n; ++i) x[i] += normed[i];
      }
      if (args.next != nullptr) norm_row(x, row, n, args.next_norm, on_cpu(*args.next), normed);
    }
  });
}

// Streams parts of `weight` with each distance in turn, so that a change in the machine's load meets all of them alike and
// no part is still in a cache.
void CpuDevice::tune(const LinearWeight& weight) {
  if (sizes_.f32() || &kernels_ == &scalar_kernels())
    return;  // these kernels fetch nothing ahead, and would take seconds
  const int64_t strip_bytes = strip_layout(tile_format(weight.type), weight.k).bytes;
  const int64_t part_strips = kTuneBytes / strip_bytes;
  const int64_t parts = weight.n / kStripRows / std::max<int64_t>(part_strips, 1);
  if (parts < 3) return;  // it would be read from a cache
  const std::array<WeightType, 1> readers = {weight.type};
  const ActivationShape shape = {.max_rows = kTuneRows.back(), .k = weight.k, .readers = readers};
  const auto memory =
      std::make_unique<CacheLine[]>(static_cast<size_t>(sizes_.activation_bytes(shape)) / sizeof(CacheLine) + 1);
  const auto in = make_linear_input(shape, memory[0].bytes);
  LinearWeight part = weight;
  part.n = part_strips * kStripRows;
  std::vector<float> out(static_cast<size_t>(kTuneRows.back() * part.n));
  int64_t turn = 0;
  for (size_t rows = 0; rows < kTuneRows.size(); ++rows) {
    in->set_rows(kTuneRows[rows]);
    const auto& distances = kPrefetchBytes[rows];
    std::array<double, kPrefetchBytes[0].size()> best_s;
    best_s.fill(std::numeric_limits<double>::infinity());
    for (int round = 0; round < kTuneRounds; ++round) {
      for (size_t i = 0; i < distances.size(); ++i, ++turn) {
        prefetch_bytes_[rows] = distances[i];
        part.data = weight.data + turn % parts * part_strips * strip_bytes;
        const auto start = std::chrono::steady_clock::now();
        linear(*in, part, out.data());
        best_s[i] =
            std::min(best_s[i], std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
      }
    }
    const auto best = static_cast<size_t>(std::ranges::min_element(best_s) - best_s.begin());
    prefetch_bytes_[rows] = distances[best_s[best] < kWorthAnotherDistance * best_s[0] ? best : 0];
  }
}

namespace {

// Heads of a matrix that one item computes: one, or as many as fill whole strips.
int64_t heads_per_item(int64_t head_dim) {
  int64_t heads = 1;
  while (heads * head_dim % kStripRows != 0) heads *= 2;
  return heads;
}

// Where a row's K and V go.
struct RowPlace {
  std::byte* page = nullptr;  // of KV head 0
  int32_t slot = 0;
};

void apply_factors(float* head, const float* factors, int64_t dim, bool multiply) {
  for (int64_t i = 0; i < dim; ++i) head[i] = multiply ? head[i] * factors[i] : head[i] / factors[i];
}

void observe(const QkvArgs& args, bool is_q, int64_t index, const float* head) {
  const int64_t dim = args.shape.head_dim;
  const int64_t half = args.rope.dim / 2;
  float* largest = args.statistics->k_largest_square + index * dim;
  double* sums = args.statistics->q_sum_of_squares + index * dim;
  for (int64_t i = 0; i < dim; ++i) {
    const int64_t pair = i < half ? i + half : i - half;
    const float other = i < 2 * half ? head[pair] * head[pair] : 0.0f;
    const float square = i < half ? head[i] * head[i] + other : other + head[i] * head[i];
    if (is_q) {
      sums[i] += double{square};
    } else {
      if (!(square <= largest[i])) largest[i] = square;
    }
  }
}

std::vector<RowPlace> row_places(std::span<const SequenceSpan> spans, const KvLayer& kv) {
  std::vector<RowPlace> places;
  for (const SequenceSpan& span : spans) {
    for (int64_t i = 0; i < span.rows; ++i) {
      const int64_t position = span.first_position + i;
      places.push_back({kv.base + span.page_table[position / kPageTokens] * kv.page_stride,
                        static_cast<int32_t>(position % kPageTokens)});
    }
  }
  return places;
}

}  // namespace

// An item is a head of Q, or a head of K together with its V, for all rows: everything up to the page is done by the
// worker that computed it.
void CpuDevice::qkv_project(const QkvArgs& args) {
  const HeadShape& shape = args.shape;
  const int64_t dim = shape.head_dim;
  const CpuLinearInput& q_in = input_of(*args.in, args.q, 0);
  const CpuLinearInput& k_in = same_input(args.k, args.q) ? q_in : input_of(*args.in, args.k, 1);
  const CpuLinearInput& v_in = same_input(args.v, args.k) ? k_in : input_of(*args.in, args.v, 2);
  const Linear q = prepare(args.q);
  const Linear k = prepare(args.k);
  const Linear v = prepare(args.v);
  const std::vector<RowPlace> places = row_places(args.spans, args.kv);
  const auto padded = static_cast<int32_t>(padded_dim(dim));
  const int64_t half = args.rope.dim / 2;

  const auto bias_norm_rope = [&](float* head, int64_t index, const float* bias, const Norm& norm, int64_t row,
                                  bool rotate) {
    add_bias(head, bias == nullptr ? nullptr : bias + index * dim, dim);
    if (norm.weight != nullptr) kernels_.rms_norm(head, norm.weight, dim, norm.eps, head);
    if (rotate && half > 0) kernels_.rope(head, args.rope.cos + row * half, args.rope.sin + row * half, half);
  };
  const int64_t per_item = heads_per_item(dim);
  const int64_t width = per_item * dim;  // a whole number of strips
  const auto multiply = [&](const Linear& weight, int64_t first_head, const Panel& panel, float* out) {
    const int64_t first = first_head * dim / kStripRows;
    const int64_t last = std::min(first + width / kStripRows, weight.strips());
    for (int64_t strip = first; strip < last; ++strip)
      weight.multiply(strip, panel, out + (strip - first) * kStripRows, width);
  };
  const auto kv_items = (shape.kv_heads + per_item - 1) / per_item;
  const auto q_items = (shape.heads + per_item - 1) / per_item;
  pool_.parallel_for(kv_items + q_items, 1, [&](int64_t begin, int64_t end, int worker) {
    float* tile = scratch(worker, 2 * kMaxPanelRows * width);
    for (int64_t item = begin; item < end; ++item) {
      const bool is_q = item >= kv_items;
      const int64_t first_head = (is_q ? item - kv_items : item) * per_item;
      const int64_t heads = std::min(per_item, (is_q ? shape.heads : shape.kv_heads) - first_head);
      for (int64_t p = 0; p < q_in.panels(); ++p) {
        const Panel panel = is_q ? q_in.panel(p) : k_in.panel(p);
        const int64_t first_row = q_in.panel_first_row(p);
        float* values = tile + kMaxPanelRows * width;
        multiply(is_q ? q : k, first_head, panel, tile);
        if (!is_q) multiply(v, first_head, v_in.panel(p), values);
        for (int64_t m = 0; m < panel.rows; ++m) {
          const int64_t row = first_row + m;
          for (int64_t h = 0; h < heads; ++h) {
            float* head = tile + m * width + h * dim;
            const int64_t index = first_head + h;
            bias_norm_rope(head, index, is_q ? args.q_bias : args.k_bias, is_q ? args.q_norm : args.k_norm, row, true);
            if (args.statistics != nullptr) observe(args, is_q, index, head);
            if (args.k_factors != nullptr) {
              const int64_t kv_head = is_q ? index / (shape.heads / shape.kv_heads) : index;
              apply_factors(head, args.k_factors + kv_head * dim, dim, is_q);
            }
            if (is_q) {
              std::copy_n(head, dim, args.q_out + (row * shape.heads + index) * dim);
              continue;
            }
            float* value = values + m * width + h * dim;
            bias_norm_rope(value, index, args.v_bias, Norm{}, row, false);
            const RowPlace& place = places[static_cast<size_t>(row)];
            kv_.store(head, value, static_cast<int32_t>(dim), padded, place.slot,
                      reinterpret_cast<uint8_t*>(place.page + index * args.kv.head_stride));
          }
        }
      }
    }
  });
}

void CpuDevice::gate_up(const GateUpArgs& args) {
  const CpuLinearInput& in = input_of(*args.in, args.gate, 0);
  const CpuLinearInput& up_in = same_input(args.up, args.gate) ? in : input_of(*args.in, args.up, 1);
  CpuLinearInput& out = on_cpu(*args.out);
  const Linear gate = prepare(args.gate);
  const Linear up = prepare(args.up);
  const auto combine = args.activation == Activation::kSilu ? kernels_.silu_mul : kernels_.gelu_tanh_mul;
  // 32 features at a time are one group of the activations that they become. One panel takes weights as they come from
  // memory, in long runs; for several, the weights of a run stay in a cache.
  const int64_t items = (args.gate.n + kActGroup - 1) / kActGroup;
  const int64_t item_bytes = 2 * gate.matrix.layout.bytes;
  const int64_t evenly = items / (kPiecesPerWorker * pool_.size());
  const int64_t run = in.panels() == 1 ? std::min(kRunBytes / item_bytes, evenly) : kChunkBytes / (2 * item_bytes);
  const int64_t grain = std::max<int64_t>(1, run);
  const int64_t width = grain * kActGroup;
  pool_.parallel_for(items, grain, [&](int64_t begin, int64_t end, int worker) {
    float* gates = scratch(worker, 2 * kMaxPanelRows * width);
    float* ups = gates + kMaxPanelRows * width;
    const int64_t first = begin * kActGroup;
    const int64_t features = std::min(end * kActGroup, args.gate.n) - first;
    const int64_t strips = strip_count(features);
    const auto multiply = [&](const Linear& weight, const Panel& panel, float* to) {
      for (int64_t i = 0; i < strips; ++i) weight.multiply(first / kStripRows + i, panel, to + i * kStripRows, width);
    };
    for (int64_t p = 0; p < in.panels(); ++p) {
      const Panel panel = in.panel(p);
      if (p == 0) up.fetch(first / kStripRows);
      multiply(gate, panel, gates);
      if (p == 0) gate.fetch(first / kStripRows + strips);
      multiply(up, up_in.panel(p), ups);
      for (int32_t m = 0; m < panel.rows; ++m) {
        float* g = gates + m * width;
        float* u = ups + m * width;
        add_bias(g, args.gate_bias == nullptr ? nullptr : args.gate_bias + first, features);
        add_bias(u, args.up_bias == nullptr ? nullptr : args.up_bias + first, features);
        combine(g, u, features, g);
        out.store(kernels_, in.panel_first_row(p) + m, g, first, features);
      }
    }
  });
}

}  // namespace quire::cpu
