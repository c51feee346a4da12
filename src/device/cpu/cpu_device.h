// The CPU device: block operations as phases of a thread pool over the kernels of one instruction set.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "base/thread_pool.h"
#include "device/cpu/cpu_sizes.h"
#include "device/cpu/kernels.h"
#include "device/cpu/linear_input.h"
#include "device/cpu/pack.h"
#include "device/device.h"

namespace quire::cpu {

class CpuDevice final : public Device {
 public:
  CpuDevice(const CpuDeviceSizes& sizes, const CpuDeviceOptions& options);

  const DeviceSizes& sizes() const override { return sizes_; }
  ThreadUse threads() const override { return {pool_.size(), pool_.active(), pool_.retreats()}; }
  int64_t kv_bytes_read() const override { return kv_bytes_read_.load(std::memory_order_relaxed); }
  int64_t scalar_fallbacks() const override { return scalar_fallbacks_; }

  LinearWeight pack(const LinearSource& source, std::byte* memory) override;
  void tune(const LinearWeight& weight) override;

  std::unique_ptr<LinearInput> make_linear_input(const ActivationShape& shape, std::byte* memory) override;

  void copy_slots(const SlotCopy& what) override;

  void norm(const float* x, int64_t rows, int64_t n, const Norm& norm, LinearInput& out) override;
  void qkv_project(const QkvArgs& args) override;
  void attention(const AttentionArgs& args) override;
  void project(const ProjectArgs& args) override;
  void gate_up(const GateUpArgs& args) override;
  void linear(const LinearInput& in, const LinearWeight& weight, float* out) override;
  void head(const HeadArgs& args) override;
  void log_sum_exp(const float* logits, int64_t rows, int64_t n, float* out) override;
  void matmul(const MatMulArgs& args) override;
  void parallel(int64_t count, const std::function<void(int64_t, int64_t)>& body) override;

 private:
  struct Linear;  // a weight with the kernel that multiplies it
  struct AttentionItem;
  struct AttentionPart;

  Linear prepare(const LinearWeight& weight);
  // `in` as `weight` reads it: repacked into place `index` where it must be.
  const CpuLinearInput& input_of(const LinearInput& in, const LinearWeight& weight, int64_t index);
  // Whether one input_of() serves both.
  bool same_input(const LinearWeight& a, const LinearWeight& b) const;
  // Calls take(first_row, rows, first_feature, features, tile) for tiles [rows][16] that cover the product.
  template <typename Take>
  void for_tiles(const CpuLinearInput& in, const Linear& weight, Take&& take);
  // A row's norm (if any), then its activations. `scratch` holds n floats.
  void norm_row(const float* x, int64_t row, int64_t n, const Norm& norm, CpuLinearInput& out, float* scratch) const;
  float* scratch(int worker, int64_t floats);

  void attend(const AttentionArgs& args, const AttentionItem& item, int64_t kv_head, int64_t split,
              const AttentionState& part);
  void attend_all_scores(const AttentionArgs& args, const AttentionItem& item, int64_t kv_head, float* scores,
                         const AttentionState& total);
  void finish_head(const AttentionArgs& args, const AttentionItem& item, int64_t kv_head, const AttentionState& total,
                   float* out) const;
  void store_item(const AttentionArgs& args, const AttentionItem& item, const float* out) const;
  void attend_whole(const AttentionArgs& args, std::span<const AttentionItem> items);
  void attend_split(const AttentionArgs& args, std::span<const AttentionItem> items, int64_t parts);

  const CpuDeviceSizes sizes_;
  const Kernels& kernels_;
  ThreadPool pool_;
  const KvKernels& kv_;
  const AttentionMethod method_;
  std::atomic<int64_t> kv_bytes_read_{0};
  int64_t scalar_fallbacks_ = 0;
  std::array<int32_t, 2> prefetch_bytes_ = {1024, 8192};  // for one row, and for more
  std::vector<std::vector<float>> scratch_;               // per worker, grown to the widest row
  std::vector<float> matmul_a_, matmul_b_;                // packed operands, grown to the largest
};

}  // namespace quire::cpu
