#include "device/cpu/cpu_sizes.h"

#include <algorithm>
#include <memory>

#include "base/check.h"
#include "device/cpu/kv_page.h"
#include "device/cpu/tile_format.h"

namespace quire::cpu {
namespace {

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

// The KV type that the options amount to.
KvType kv_type_of(const CpuDeviceOptions& options) {
  return options.kv.value_or(options.f32 ? KvType::kF32 : KvType::kBF16);
}

const Kernels* best_avx2_kernels() {
  const Kernels* with_vnni = avxvnni_kernels();
  return with_vnni != nullptr ? with_vnni : avx2_kernels();
}

Result<const Kernels*> kernels_of(CpuDeviceOptions::Isa isa) {
  const Kernels* found = nullptr;
  switch (isa) {
    case CpuDeviceOptions::Isa::kAuto:
      found = avx512_kernels();
      if (found == nullptr) found = best_avx2_kernels();
      return found != nullptr ? found : &scalar_kernels();
    case CpuDeviceOptions::Isa::kScalar:
      return &scalar_kernels();
    case CpuDeviceOptions::Isa::kAvx2:
      found = best_avx2_kernels();
      if (found != nullptr) return found;
      return unsupported(
          "--isa avx2: this CPU lacks AVX2, FMA or F16C; leave the choice to quire, or use --isa scalar");
    case CpuDeviceOptions::Isa::kAvx512:
      found = avx512_kernels();
      if (found != nullptr) return found;
      return unsupported(
          "--isa avx512: this CPU lacks AVX-512 VNNI or BF16; leave the choice to quire, or use --isa avx2 or scalar");
  }
  QUIRE_CHECK(false);
}

}  // namespace

Result<CpuDeviceSizes> CpuDeviceSizes::create(const CpuDeviceOptions& options) {
  QUIRE_ASSIGN_OR_RETURN(const Kernels* kernels, kernels_of(options.isa));
  if (options.attention == AttentionMethod::kFullScores &&
      (kv_type_of(options) != KvType::kBF16 || kernels->attend_full_bf16 == nullptr)) {
    return unsupported(
        "--attention full: there is a kernel for AVX-512 and bf16 KV only; use --attention flash or per-head, or "
        "--kv-dtype bf16");
  }
  return CpuDeviceSizes(*kernels, options);
}

CpuDeviceSizes::CpuDeviceSizes(const Kernels& kernels, const CpuDeviceOptions& options)
    : kernels_(&kernels),
      threads_(std::max(options.threads, 1)),
      f32_(options.f32),
      power_of_two_scales_(options.power_of_two_scales),
      kv_type_(kv_type_of(options)) {}

std::string CpuDeviceSizes::description() const {
  const std::string threads = std::to_string(threads_) + (threads_ == 1 ? " thread" : " threads");
  const std::string scales = power_of_two_scales_ ? " (power-of-two scales)" : "";
  const std::string activations = f32_ ? "f32" : "int8" + scales + " or bf16";
  return std::string(kernels_->name) + ", " + activations + " activations, " + kv_name(kv_type_) + " KV, " + threads;
}

std::string_view CpuDeviceSizes::layout() const { return kTileLayout; }

std::string CpuDeviceSizes::kernel_name(const WeightType& type) const {
  const TileFormat format = tile_format(type);
  const ActKind kind = act_kind(type);
  std::string name = kernels_->linear(format, kind) != nullptr ? kernels_->name : scalar_kernels().name;
  name += " " + std::string(quants_name(format.quants)) + " x ";
  name += kind == ActKind::kI8 ? "int8" : kind == ActKind::kBF16 ? "bf16" : "f32";
  if (type.token_scale && kind == ActKind::kI8) name += " a token";
  return name;
}

int64_t CpuDeviceSizes::packed_bytes(const WeightType& type, int64_t n, int64_t k) const {
  return strip_count(n) * strip_layout(tile_format(type), k).bytes;
}

int64_t CpuDeviceSizes::activation_bytes(const ActivationShape& shape) const {
  Arena count;
  const CpuLinearInput counted = lay_out(shape, count);
  return count.used();
}

int64_t CpuDeviceSizes::kv_head_bytes(int64_t head_dim) const { return kv_page_bytes(kv_type_, head_dim); }

int64_t CpuDeviceSizes::attention_scratch_floats(const HeadShape& shape, int64_t context) const {
  const int64_t splits = (context + kKeySplit - 1) / kKeySplit;
  return kMaxSplitRows * splits * (padded_dim(shape.head_dim) + 2);
}

const KvKernels& CpuDeviceSizes::kv_kernels() const {
  switch (kv_type_) {
    case KvType::kBF16:
      return kernels_->kv_bf16;
    case KvType::kF16:
      return kernels_->kv_f16;
    case KvType::kI8:
      return kernels_->kv_i8;
    case KvType::kF32:
      return kernels_->kv_f32;
  }
  QUIRE_CHECK(false);
}

ActKind CpuDeviceSizes::act_kind(const WeightType& type) const {
  const TileFormat format = tile_format(type);
  if (f32_) return ActKind::kF32;
  if (format.integer()) return ActKind::kI8;
  // f16 and f32 weights would lose precision as bf16: their activations stay f32.
  return format.quants == Quants::kBF16 || format.quants == Quants::kE4M3 ? ActKind::kBF16 : ActKind::kF32;
}

ActKinds CpuDeviceSizes::act_kinds(std::span<const WeightType> readers, bool repacked) const {
  ActKinds kinds;
  kinds.power_of_two = power_of_two_scales_;
  for (const WeightType& type : readers) {
    if (repacks(type) == repacked) kinds.add(act_kind(type));
  }
  return kinds;
}

CpuLinearInput CpuDeviceSizes::lay_out(const ActivationShape& shape, Arena& arena) const {
  return CpuLinearInput(shape, act_kinds(shape.readers, false), act_kinds(shape.readers, true), arena);
}

}  // namespace quire::cpu

namespace quire {

Result<std::unique_ptr<DeviceSizes>> make_cpu_device_sizes(const CpuDeviceOptions& options) {
  QUIRE_ASSIGN_OR_RETURN(cpu::CpuDeviceSizes sizes, cpu::CpuDeviceSizes::create(options));
  return std::unique_ptr<DeviceSizes>(std::make_unique<cpu::CpuDeviceSizes>(std::move(sizes)));
}

}  // namespace quire
