// LinearInput on the CPU: rows in panels of up to 12, interleaved for the tiles (kernels.h), in each of the formats
// that some reader needs.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "device/cpu/kernels.h"
#include "device/device.h"
#include "device/memory.h"

namespace quire::cpu {

// Splits `rows` into panels of 12, 8, 6, 4, 3, 2 or 1 rows, the sizes that kernels exist for.
std::vector<int32_t> split_panels(int64_t rows);

struct ActKinds {
  bool i8 = false;
  bool bf16 = false;
  bool f32 = false;
  bool power_of_two = false;  // scales of the int8 values

  void add(ActKind kind);
  bool any() const { return i8 || bf16 || f32; }
};

// Some linears read their input in an order or with scales of their own. For these the rows are kept as they are too, and
// packed once more before the product (repack.cc), at most kRepacked ways at a time: q, k and v may differ.
inline constexpr int64_t kRepacked = 3;

class CpuLinearInput final : public LinearInput {
 public:
  // Takes its memory from `arena` (which may only count). `repacked`: what linears read that read it their own way.
  CpuLinearInput(const ActivationShape& shape, ActKinds kinds, ActKinds repacked, Arena& arena);

  void set_rows(int64_t rows) override;
  int64_t rows() const { return rows_; }
  int64_t k() const { return k_; }

  int64_t panels() const { return static_cast<int64_t>(panel_rows_.size()); }
  int64_t panel_first_row(int64_t panel) const { return panel_first_[static_cast<size_t>(panel)]; }
  Panel panel(int64_t index) const;

  // Stores n values of one row from column first_k on, in every format; n and first_k are multiples of 32, except
  // at the end of the row: what is missing to a multiple of 32 there is taken as 0.
  void store(const Kernels& kernels, int64_t row, const float* x, int64_t first_k, int64_t n);
  // Stores a whole row, int8 with one scale. `x` has k() values and room for k_padded.
  void store_token(const Kernels& kernels, int64_t row, float* x);

  const float* values(int64_t row) const override { return plain_ + row * k_; }
  // Scratch of whoever multiplies, one operation at a time.
  CpuLinearInput& repacked(int64_t index) const { return *repacked_[static_cast<size_t>(index)]; }
  int64_t k_padded() const { return k_padded_; }

 private:
  PanelSlot slot(int64_t row) const;

  int64_t k_;
  int64_t k_padded_;
  ActKinds kinds_;
  int64_t rows_ = 0;
  std::vector<int32_t> panel_rows_;
  std::vector<int64_t> panel_first_;
  std::vector<int32_t> row_panel_;  // panel of each row
  int8_t* q_ = nullptr;
  float* scales_ = nullptr;
  int32_t* neg_sums16_ = nullptr;
  int32_t* neg_sums32_ = nullptr;
  float* scaled_sums32_ = nullptr;
  uint16_t* bf16_ = nullptr;
  float* f32_ = nullptr;
  float* plain_ = nullptr;  // [max_rows][k], where some reader repacks or an observer reads
  std::array<std::unique_ptr<CpuLinearInput>, kRepacked> repacked_;
};

// The device's own kind, which is all that it is ever given.
inline const CpuLinearInput& on_cpu(const LinearInput& activations) {
  return static_cast<const CpuLinearInput&>(activations);
}
inline CpuLinearInput& on_cpu(LinearInput& activations) { return static_cast<CpuLinearInput&>(activations); }

}  // namespace quire::cpu
