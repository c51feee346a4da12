// What the CPU device would take and is called, and what follows from its options alone: which kernels it uses, and in
// which formats its linears read their inputs. A value; immutable, any thread.
#pragma once

#include <span>
#include <string>

#include "base/status.h"
#include "device/cpu/kernels.h"
#include "device/cpu/linear_input.h"
#include "device/device.h"
#include "device/memory.h"

namespace quire::cpu {

class CpuDeviceSizes final : public DeviceSizes {
 public:
  // Fails as make_cpu_device does.
  static Result<CpuDeviceSizes> create(const CpuDeviceOptions& options);

  std::string description() const override;
  std::string_view layout() const override;
  std::string kernel_name(const WeightType& type) const override;
  int64_t packed_bytes(const WeightType& type, int64_t n, int64_t k) const override;
  int64_t activation_bytes(const ActivationShape& shape) const override;
  int64_t kv_head_bytes(int64_t head_dim) const override;
  int64_t attention_scratch_floats(const HeadShape& shape, int64_t context) const override;

  const Kernels& kernels() const { return *kernels_; }
  const KvKernels& kv_kernels() const;
  KvType kv_type() const { return kv_type_; }
  bool f32() const { return f32_; }

  // What a linear of this type reads.
  ActKind act_kind(const WeightType& type) const;
  // Whether such a linear reads its input in an order or with scales of its own, not as others do.
  bool repacks(const WeightType& type) const { return type.ordered || (type.token_scale && !f32_); }
  // Takes memory from `arena`, which may only count.
  CpuLinearInput lay_out(const ActivationShape& shape, Arena& arena) const;

 private:
  CpuDeviceSizes(const Kernels& kernels, const CpuDeviceOptions& options);
  ActKinds act_kinds(std::span<const WeightType> readers, bool repacked) const;

  const Kernels* kernels_;  // of the program
  int threads_;
  bool f32_;
  bool power_of_two_scales_;
  KvType kv_type_;
};

// Rows of a step whose partial results of attention may be kept apart: what the scratch is for.
inline constexpr int64_t kMaxSplitRows = 64;

}  // namespace quire::cpu
