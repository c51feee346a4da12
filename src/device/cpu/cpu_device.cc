#include "device/cpu/cpu_device.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/check.h"

namespace quire::cpu {
namespace {

// Packed weights that one worker takes at a time while loading.
constexpr int64_t kPackBytes = 256 << 10;

const KvKernels& kv_kernels(const Kernels& kernels, KvType type) {
  switch (type) {
    case KvType::kBF16:
      return kernels.kv_bf16;
    case KvType::kF16:
      return kernels.kv_f16;
    case KvType::kI8:
      return kernels.kv_i8;
    case KvType::kF32:
      return kernels.kv_f32;
  }
  QUIRE_CHECK(false);
}

const char* kv_name(KvType type) {
  switch (type) {
    case KvType::kBF16:
      return "bf16";
    case KvType::kF16:
      return "f16";
    case KvType::kI8:
      return "int8";
    case KvType::kF32:
      return "f32";
  }
  QUIRE_CHECK(false);
}

}  // namespace

KvType kv_type(const CpuDeviceOptions& options) {
  return options.kv.value_or(options.f32 ? KvType::kF32 : KvType::kBF16);
}

CpuDevice::CpuDevice(const Kernels& kernels, const CpuDeviceOptions& options)
    : kernels_(kernels),
      pool_(options.threads, options.adapt_threads),
      f32_(options.f32),
      power_of_two_scales_(options.power_of_two_scales),
      kv_type_(kv_type(options)),
      kv_(kv_kernels(kernels, kv_type_)),
      method_(options.attention),
      scratch_(static_cast<size_t>(pool_.size())) {}

std::string CpuDevice::description() const {
  const std::string threads = std::to_string(pool_.size()) + (pool_.size() == 1 ? " thread" : " threads");
  const std::string scales = power_of_two_scales_ ? " (power-of-two scales)" : "";
  const std::string activations = f32_ ? "f32" : "int8" + scales + " or bf16";
  return std::string(kernels_.name) + ", " + activations + " activations, " + kv_name(kv_type_) + " KV, " + threads;
}

ActKind CpuDevice::act_kind(const WeightType& type) const {
  const TileFormat format = tile_format(type);
  if (f32_) return ActKind::kF32;
  if (format.integer()) return ActKind::kI8;
  // f16 and f32 weights would lose precision as bf16: their activations stay f32.
  return format.quants == Quants::kBF16 || format.quants == Quants::kE4M3 ? ActKind::kBF16 : ActKind::kF32;
}

std::string CpuDevice::kernel_name(const WeightType& type) const {
  const TileFormat format = tile_format(type);
  const ActKind kind = act_kind(type);
  std::string name = kernels_.linear(format, kind) != nullptr ? kernels_.name : scalar_kernels().name;
  name += " " + std::string(quants_name(format.quants)) + " x ";
  name += kind == ActKind::kI8 ? "int8" : kind == ActKind::kBF16 ? "bf16" : "f32";
  if (type.token_scale && kind == ActKind::kI8) name += " a token";
  return name;
}

ActKinds CpuDevice::act_kinds(std::span<const WeightType> readers, bool repacked) const {
  ActKinds kinds;
  kinds.power_of_two = power_of_two_scales_;
  for (const WeightType& type : readers) {
    if (repacks(type) == repacked) kinds.add(act_kind(type));
  }
  return kinds;
}

int64_t CpuDevice::packed_bytes(const WeightType& type, int64_t n, int64_t k) const {
  return strip_count(n) * strip_layout(tile_format(type), k).bytes;
}

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

CpuActivations CpuDevice::lay_out(const ActivationShape& shape, Arena& arena) const {
  return CpuActivations(shape, act_kinds(shape.readers, false), act_kinds(shape.readers, true), arena);
}

int64_t CpuDevice::activation_bytes(const ActivationShape& shape) const {
  Arena count;
  const CpuActivations counted = lay_out(shape, count);
  return count.used();
}

std::unique_ptr<Activations> CpuDevice::make_activations(const ActivationShape& shape, std::byte* memory) {
  Arena arena(memory);
  return std::make_unique<CpuActivations>(lay_out(shape, arena));
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
namespace {

const cpu::Kernels* best_avx2_kernels() {
  const cpu::Kernels* with_vnni = cpu::avxvnni_kernels();
  return with_vnni != nullptr ? with_vnni : cpu::avx2_kernels();
}

Result<const cpu::Kernels*> kernels_of(CpuDeviceOptions::Isa isa) {
  const cpu::Kernels* found = nullptr;
  switch (isa) {
    case CpuDeviceOptions::Isa::kAuto:
      found = cpu::avx512_kernels();
      if (found == nullptr) found = best_avx2_kernels();
      return found != nullptr ? found : &cpu::scalar_kernels();
    case CpuDeviceOptions::Isa::kScalar:
      return &cpu::scalar_kernels();
    case CpuDeviceOptions::Isa::kAvx2:
      found = best_avx2_kernels();
      if (found != nullptr) return found;
      return unsupported(
          "--isa avx2: this CPU lacks AVX2, FMA or F16C; leave the choice to quire, or use --isa scalar");
    case CpuDeviceOptions::Isa::kAvx512:
      found = cpu::avx512_kernels();
      if (found != nullptr) return found;
      return unsupported(
          "--isa avx512: this CPU lacks AVX-512 VNNI or BF16; leave the choice to quire, or use --isa avx2 or scalar");
  }
  QUIRE_CHECK(false);
}

}  // namespace

Result<std::unique_ptr<Device>> make_cpu_device(const CpuDeviceOptions& options) {
  QUIRE_ASSIGN_OR_RETURN(const cpu::Kernels* kernels, kernels_of(options.isa));
  if (options.attention == AttentionMethod::kFullScores &&
      (cpu::kv_type(options) != KvType::kBF16 || kernels->attend_full_bf16 == nullptr)) {
    return unsupported(
        "--attention full: there is a kernel for AVX-512 and bf16 KV only; use --attention flash or per-head, or "
        "--kv-dtype bf16");
  }
  return std::unique_ptr<Device>(std::make_unique<cpu::CpuDevice>(*kernels, options));
}

}  // namespace quire
