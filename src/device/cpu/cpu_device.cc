#include "device/cpu/cpu_device.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/check.h"

namespace quire::cpu {
namespace {

// Weights that one worker takes at a time: enough to hide the dealing, little enough to share the last ones.
constexpr int64_t kChunkBytes = 64 << 10;

const CpuActivations& on_cpu(const Activations& activations) { return static_cast<const CpuActivations&>(activations); }
CpuActivations& on_cpu(Activations& activations) { return static_cast<CpuActivations&>(activations); }

StripView view_of(const PackedMatrix& matrix, int64_t strip) {
  const auto* base = reinterpret_cast<const uint8_t*>(matrix.strip(strip));
  StripView view{};
  view.super = base;
  view.scales = base + matrix.layout.scales;
  view.mins = base + matrix.layout.mins;
  view.quants = base + matrix.layout.quants;
  view.k_padded = matrix.layout.k_padded;
  for (int32_t group = matrix.format.group; group > kActGroup; group /= 2) ++view.group_shift;
  return view;
}

void add_bias(float* values, const float* bias, int64_t n) {
  if (bias == nullptr) return;
  for (int64_t i = 0; i < n; ++i) values[i] += bias[i];
}

}  // namespace

struct CpuDevice::Linear {
  PackedMatrix matrix;
  LinearFn kernel = nullptr;
};

CpuDevice::CpuDevice(const Kernels& kernels, int threads, bool f32)
    : kernels_(kernels), pool_(threads), f32_(f32), scratch_(static_cast<size_t>(pool_.size())) {}

std::string CpuDevice::description() const {
  const std::string threads = std::to_string(pool_.size()) + (pool_.size() == 1 ? " thread" : " threads");
  return std::string(kernels_.name) + (f32_ ? ", f32 activations, f32 KV, " : ", int8 or bf16 activations, bf16 KV, ") +
         threads;
}

ActKind CpuDevice::act_kind(DType dtype) const {
  const TileFormat format = tile_format(dtype);
  if (f32_) return ActKind::kF32;
  if (format.integer()) return ActKind::kI8;
  // f16 and f32 weights would lose precision as bf16: their activations stay f32.
  return format.quants == Quants::kBF16 ? ActKind::kBF16 : ActKind::kF32;
}

ActKinds CpuDevice::act_kinds(std::span<const DType> readers) const {
  ActKinds kinds;
  for (const DType dtype : readers) kinds.add(act_kind(dtype));
  return kinds;
}

CpuDevice::Linear CpuDevice::linear(const LinearWeight& weight) {
  Linear result;
  result.matrix.format = tile_format(weight.dtype);
  result.matrix.layout = strip_layout(result.matrix.format, weight.k);
  result.matrix.n = weight.n;
  result.matrix.k = weight.k;
  result.matrix.data = weight.data;
  const ActKind kind = act_kind(weight.dtype);
  result.kernel = kernels_.linear(result.matrix.format, kind);
  if (result.kernel == nullptr) {
    ++scalar_fallbacks_;
    result.kernel = scalar_kernels().linear(result.matrix.format, kind);
  }
  return result;
}

int64_t CpuDevice::packed_bytes(DType dtype, int64_t n, int64_t k) const {
  return strip_count(n) * strip_layout(tile_format(dtype), k).bytes;
}

LinearWeight CpuDevice::pack(const LinearSource& source, std::byte* memory) {
  const StripLayout layout = strip_layout(tile_format(source.dtype), source.k);
  std::vector<std::unique_ptr<StripPacker>> packers(static_cast<size_t>(pool_.size()));
  pool_.parallel_for(strip_count(source.n), std::max<int64_t>(1, 4 * kChunkBytes / layout.bytes),
                     [&](int64_t begin, int64_t end, int worker) {
                       auto& packer = packers[static_cast<size_t>(worker)];
                       if (packer == nullptr) packer = std::make_unique<StripPacker>(source.dtype, source.k);
                       for (int64_t strip = begin; strip < end; ++strip) {
                         std::array<const std::byte*, kStripRows> rows{};
                         for (int64_t r = 0; r < kStripRows; ++r) {
                           const int64_t row = strip * kStripRows + r;
                           rows[static_cast<size_t>(r)] = row < source.n ? source.row(row) : nullptr;
                         }
                         packer->pack(rows, memory + strip * layout.bytes);
                       }
                     });
  return {.dtype = source.dtype, .n = source.n, .k = source.k, .data = memory};
}

int64_t CpuDevice::activation_bytes(int64_t max_rows, int64_t k, std::span<const DType> readers) const {
  Arena count;
  const CpuActivations counted(max_rows, k, act_kinds(readers), count);
  return count.used();
}

std::unique_ptr<Activations> CpuDevice::make_activations(int64_t max_rows, int64_t k, std::span<const DType> readers,
                                                         std::byte* memory) {
  Arena arena(memory);
  return std::make_unique<CpuActivations>(max_rows, k, act_kinds(readers), arena);
}

float* CpuDevice::scratch(int worker, int64_t floats) {
  std::vector<float>& memory = scratch_[static_cast<size_t>(worker)];
  if (static_cast<int64_t>(memory.size()) < floats) memory.resize(static_cast<size_t>(floats));
  return memory.data();
}

void CpuDevice::norm_row(const float* x, int64_t row, int64_t n, const Norm& norm, CpuActivations& out,
                         float* scratch) const {
  if (norm.weight != nullptr) {
    kernels_.rms_norm(x, norm.weight, n, norm.eps, scratch);
    x = scratch;
  }
  out.store(kernels_, row, x, 0, n);
}

void CpuDevice::norm(const float* x, int64_t rows, int64_t n, const Norm& norm, Activations& out) {
  CpuActivations& activations = on_cpu(out);
  pool_.parallel_for(rows, 4, [&](int64_t begin, int64_t end, int worker) {
    for (int64_t row = begin; row < end; ++row) norm_row(x + row * n, row, n, norm, activations, scratch(worker, n));
  });
}

void CpuDevice::multiply(const CpuActivations& in, std::span<const Linear> weights, float* out, int64_t out_stride) {
  int64_t strips = 0;
  int64_t strip_bytes = 0;
  for (const Linear& w : weights) {
    strips += strip_count(w.matrix.n);
    strip_bytes = std::max(strip_bytes, w.matrix.layout.bytes);
  }
  const int64_t grain = std::max<int64_t>(1, kChunkBytes / strip_bytes);
  pool_.parallel_for(strips, grain, [&](int64_t begin, int64_t end, int) {
    for (int64_t p = 0; p < in.panels(); ++p) {
      const Panel panel = in.panel(p);
      float* panel_out = out + in.panel_first_row(p) * out_stride;
      int64_t first_strip = 0;  // of the current weight
      int64_t first_feature = 0;
      for (const Linear& w : weights) {
        const int64_t count = strip_count(w.matrix.n);
        for (int64_t s = std::max(begin, first_strip); s < std::min(end, first_strip + count); ++s) {
          const int64_t feature = (s - first_strip) * kStripRows;
          const StripView view = view_of(w.matrix, s - first_strip);
          float* to = panel_out + first_feature + feature;
          const int64_t features = std::min(kStripRows, w.matrix.n - feature);
          if (features == kStripRows) {
            w.kernel(w.matrix.format, view, panel, to, out_stride);
          } else {
            float tile[kMaxPanelRows * kStripRows];
            w.kernel(w.matrix.format, view, panel, tile, kStripRows);
            for (int32_t m = 0; m < panel.rows; ++m) std::copy_n(tile + m * kStripRows, features, to + m * out_stride);
          }
        }
        first_strip += count;
        first_feature += w.matrix.n;
      }
    }
  });
}

void CpuDevice::qkv_project(const QkvArgs& args) {
  const HeadShape& shape = args.shape;
  const int64_t heads = shape.heads + 2 * shape.kv_heads;
  const int64_t stride = heads * shape.head_dim;
  const std::array<Linear, 3> weights = {linear(args.q), linear(args.k), linear(args.v)};
  multiply(on_cpu(*args.in), weights, args.qkv, stride);

  const auto padded = static_cast<int32_t>((shape.head_dim + 15) / 16 * 16);
  const auto store = f32_ ? kernels_.store_kv_f32 : kernels_.store_kv_bf16;
  auto prepare = [&](float* head, const float* bias, const Norm& norm, int64_t row, bool rotate) {
    add_bias(head, bias, shape.head_dim);
    if (norm.weight != nullptr) kernels_.rms_norm(head, norm.weight, shape.head_dim, norm.eps, head);
    const int64_t half = args.rope.dim / 2;
    if (rotate && half > 0) kernels_.rope(head, args.rope.cos + row * half, args.rope.sin + row * half, half);
  };
  auto offset = [&](const float* bias, int64_t head) {
    return bias == nullptr ? nullptr : bias + head * shape.head_dim;
  };
  for (const SequenceSpan& span : args.spans) {
    pool_.parallel_for(span.rows, 4, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = span.first_row + i;
        float* q = args.qkv + row * stride;
        for (int64_t h = 0; h < shape.heads; ++h)
          prepare(q + h * shape.head_dim, offset(args.q_bias, h), args.q_norm, row, true);
        const int64_t position = span.first_position + i;
        std::byte* page = args.kv.base + span.page_table[position / kPageTokens] * args.kv.page_stride;
        for (int64_t h = 0; h < shape.kv_heads; ++h) {
          float* k = q + (shape.heads + h) * shape.head_dim;
          float* v = k + shape.kv_heads * shape.head_dim;
          prepare(k, offset(args.k_bias, h), args.k_norm, row, true);
          prepare(v, offset(args.v_bias, h), Norm{}, row, false);
          store(k, v, static_cast<int32_t>(shape.head_dim), padded, static_cast<int32_t>(position % kPageTokens),
                reinterpret_cast<uint8_t*>(page + h * args.kv.head_stride));
        }
      }
    });
  }
}

void CpuDevice::project_partial(const Activations& in, const LinearWeight& weight, float* partial) {
  const std::array<Linear, 1> weights = {linear(weight)};
  multiply(on_cpu(in), weights, partial, weight.n);
}

void CpuDevice::finish(const FinishArgs& args) {
  pool_.parallel_for(args.rows, 4, [&](int64_t begin, int64_t end, int worker) {
    float* normed = scratch(worker, 2 * args.n);
    float* sum = normed + args.n;
    for (int64_t row = begin; row < end; ++row) {
      float* x = args.x + row * args.n;
      const float* add = args.partial + row * args.n;
      if (args.bias != nullptr) {
        for (int64_t i = 0; i < args.n; ++i) sum[i] = add[i] + args.bias[i];
        add = sum;
      }
      if (args.post_norm.weight != nullptr) {
        kernels_.rms_norm(add, args.post_norm.weight, args.n, args.post_norm.eps, normed);
        add = normed;
      }
      for (int64_t i = 0; i < args.n; ++i) x[i] += add[i];
      if (args.next != nullptr) norm_row(x, row, args.n, args.next_norm, on_cpu(*args.next), normed);
    }
  });
}

void CpuDevice::gate_up(const GateUpArgs& args) {
  const CpuActivations& in = on_cpu(*args.in);
  CpuActivations& out = on_cpu(*args.out);
  const Linear gate = linear(args.gate);
  const Linear up = linear(args.up);
  const auto combine = args.activation == Activation::kSilu ? kernels_.silu_mul : kernels_.gelu_tanh_mul;
  // 32 features at a time: one group of the activations that they become.
  const int64_t items = (args.gate.n + kActGroup - 1) / kActGroup;
  const int64_t grain = std::max<int64_t>(1, kChunkBytes / (4 * gate.matrix.layout.bytes));
  pool_.parallel_for(items, grain, [&](int64_t begin, int64_t end, int) {
    float gates[kMaxPanelRows * kActGroup];
    float ups[kMaxPanelRows * kActGroup];
    for (int64_t p = 0; p < in.panels(); ++p) {
      const Panel panel = in.panel(p);
      for (int64_t item = begin; item < end; ++item) {
        const int64_t first = item * kActGroup;
        const int64_t features = std::min(kActGroup, args.gate.n - first);
        for (int64_t half = 0; half * kStripRows < features; ++half) {
          const int64_t strip = 2 * item + half;
          gate.kernel(gate.matrix.format, view_of(gate.matrix, strip), panel, gates + half * kStripRows, kActGroup);
          up.kernel(up.matrix.format, view_of(up.matrix, strip), panel, ups + half * kStripRows, kActGroup);
        }
        for (int32_t m = 0; m < panel.rows; ++m) {
          float* g = gates + m * kActGroup;
          float* u = ups + m * kActGroup;
          add_bias(g, args.gate_bias == nullptr ? nullptr : args.gate_bias + first, features);
          add_bias(u, args.up_bias == nullptr ? nullptr : args.up_bias + first, features);
          combine(g, u, features, g);
          out.store(kernels_, in.panel_first_row(p) + m, g, first, features);
        }
      }
    }
  });
}

void CpuDevice::head(const HeadArgs& args) {
  const auto rows = static_cast<int64_t>(args.rows.size());
  const int64_t hidden = args.weight.k;
  args.scratch->set_rows(rows);
  CpuActivations& normed = on_cpu(*args.scratch);
  pool_.parallel_for(rows, 4, [&](int64_t begin, int64_t end, int worker) {
    for (int64_t i = begin; i < end; ++i) {
      norm_row(args.x + args.rows[static_cast<size_t>(i)] * hidden, i, hidden, args.norm, normed,
               scratch(worker, hidden));
    }
  });
  project_partial(normed, args.weight, args.logits);
  if (args.softcap > 0) {
    const int64_t total = rows * args.weight.n;
    pool_.parallel_for(total, 1 << 14, [&](int64_t begin, int64_t end, int) {
      kernels_.softcap(args.logits + begin, end - begin, args.softcap);
    });
  }
}

void CpuDevice::log_sum_exp(const float* logits, int64_t rows, int64_t n, float* out) {
  pool_.parallel_for(rows, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) out[i] = kernels_.log_sum_exp(logits + i * n, n);
  });
}

void CpuDevice::parallel(int64_t count, const std::function<void(int64_t, int64_t)>& body) {
  pool_.parallel_for(count, 1, [&](int64_t begin, int64_t end, int) { body(begin, end); });
}

}  // namespace quire::cpu

namespace quire {

Result<std::unique_ptr<Device>> make_cpu_device(const CpuDeviceOptions& options) {
  const cpu::Kernels* kernels = options.isa == CpuDeviceOptions::Isa::kScalar ? nullptr : cpu::avx512_kernels();
  if (kernels == nullptr && options.isa == CpuDeviceOptions::Isa::kAvx512) {
    return unsupported(
        "--isa avx512: this CPU lacks AVX-512 VNNI or BF16; use --isa scalar or leave the choice to quire");
  }
  if (kernels == nullptr) kernels = &cpu::scalar_kernels();
  return std::unique_ptr<Device>(std::make_unique<cpu::CpuDevice>(*kernels, options.threads, options.f32));
}

}  // namespace quire
