#include "device/cpu/cpu_device.h"

#include <algorithm>
#include <array>

namespace quire::cpu {
namespace {

// Packed weights that one worker takes at a time while loading.
constexpr int64_t kPackBytes = 256 << 10;

}  // namespace

CpuDevice::CpuDevice(const CpuDeviceSizes& sizes, const CpuDeviceOptions& options)
    : sizes_(sizes),
      kernels_(sizes.kernels()),
      pool_(options.threads, options.adapt_threads),
      kv_(sizes.kv_kernels()),
      method_(options.attention),
      scratch_(static_cast<size_t>(pool_.size())) {}

LinearWeight CpuDevice::pack(const LinearSource& source, std::byte* memory) {
  const StripLayout layout = strip_layout(tile_format(source.type), source.k);
  std::vector<std::unique_ptr<StripPacker>> packers(static_cast<size_t>(pool_.size()));
  pool_.parallel_for(strip_count(source.n), std::max<int64_t>(1, kPackBytes / layout.bytes),
                     [&](int64_t begin, int64_t end, int worker) {
                       auto& packer = packers[static_cast<size_t>(worker)];
                       if (packer == nullptr) packer = std::make_unique<StripPacker>(source.type, source.k);
                       for (int64_t strip = begin; strip < end; ++strip) {
                         if (source.codes != nullptr) {
                           const int64_t first = strip * kStripRows;
                           packer->pack(source.codes, first, std::min(kStripRows, source.n - first),
                                        memory + strip * layout.bytes);
                           continue;
                         }
                         std::array<const std::byte*, kStripRows> rows{};
                         for (int64_t r = 0; r < kStripRows; ++r) {
                           const int64_t row = strip * kStripRows + r;
                           rows[static_cast<size_t>(r)] = row < source.n ? source.row(row) : nullptr;
                         }
                         packer->pack(rows, memory + strip * layout.bytes);
                       }
                     });
  return {.type = source.type, .n = source.n, .k = source.k, .data = memory, .order = source.order};
}

std::unique_ptr<LinearInput> CpuDevice::make_linear_input(const ActivationShape& shape, std::byte* memory) {
  Arena arena(memory);
  return std::make_unique<CpuLinearInput>(sizes_.lay_out(shape, arena));
}

float* CpuDevice::scratch(int worker, int64_t floats) {
  std::vector<float>& memory = scratch_[static_cast<size_t>(worker)];
  if (static_cast<int64_t>(memory.size()) < floats) memory.resize(static_cast<size_t>(floats));
  return memory.data();
}

void CpuDevice::norm_row(const float* x, int64_t row, int64_t n, const Norm& norm, CpuLinearInput& out,
                         float* scratch) const {
  if (norm.weight != nullptr) {
    kernels_.rms_norm(x, norm.weight, n, norm.eps, scratch);
    x = scratch;
  }
  out.store(kernels_, row, x, 0, n);
}

void CpuDevice::norm(const float* x, int64_t rows, int64_t n, const Norm& norm, LinearInput& out) {
  CpuLinearInput& activations = on_cpu(out);
  pool_.parallel_for(rows, 4, [&](int64_t begin, int64_t end, int worker) {
    for (int64_t row = begin; row < end; ++row) norm_row(x + row * n, row, n, norm, activations, scratch(worker, n));
  });
}

void CpuDevice::head(const HeadArgs& args) {
  const auto rows = static_cast<int64_t>(args.rows.size());
  const int64_t hidden = args.weight.k;
  args.scratch->set_rows(rows);
  CpuLinearInput& normed = on_cpu(*args.scratch);
  pool_.parallel_for(rows, 4, [&](int64_t begin, int64_t end, int worker) {
    for (int64_t i = begin; i < end; ++i) {
      norm_row(args.x + args.rows[static_cast<size_t>(i)] * hidden, i, hidden, args.norm, normed,
               scratch(worker, hidden));
    }
  });
  linear(normed, args.weight, args.logits);
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
  QUIRE_ASSIGN_OR_RETURN(const cpu::CpuDeviceSizes sizes, cpu::CpuDeviceSizes::create(options));
  return std::unique_ptr<Device>(std::make_unique<cpu::CpuDevice>(sizes, options));
}

}  // namespace quire
