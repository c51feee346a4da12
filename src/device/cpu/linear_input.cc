#include "device/cpu/linear_input.h"

#include <algorithm>

#include "base/check.h"
#include "device/cpu/tile_format.h"

namespace quire::cpu {

std::vector<int32_t> split_panels(int64_t rows) {
  static constexpr int32_t kSplits[kMaxPanelRows][2] = {{0, 0}, {1, 0}, {2, 0}, {3, 0}, {4, 0}, {3, 2},
                                                        {6, 0}, {4, 3}, {8, 0}, {6, 3}, {6, 4}, {8, 3}};
  std::vector<int32_t> panels(static_cast<size_t>(rows / kMaxPanelRows), kMaxPanelRows);
  for (const int32_t part : kSplits[rows % kMaxPanelRows]) {
    if (part > 0) panels.push_back(part);
  }
  return panels;
}

void ActKinds::add(ActKind kind) {
  i8 |= kind == ActKind::kI8;
  bf16 |= kind == ActKind::kBF16;
  f32 |= kind == ActKind::kF32;
}

CpuLinearInput::CpuLinearInput(const ActivationShape& shape, ActKinds kinds, ActKinds repacked, Arena& arena)
    : k_(shape.k), k_padded_((k_ + kTileK - 1) / kTileK * kTileK), kinds_(kinds) {
  const int64_t max_rows = shape.max_rows;
  if (kinds.i8) {
    q_ = arena.take<int8_t>(max_rows * k_padded_);
    scales_ = arena.take<float>(max_rows * k_padded_ / 32);
    neg_sums16_ = arena.take<int32_t>(max_rows * k_padded_ / 16);
    neg_sums32_ = arena.take<int32_t>(max_rows * k_padded_ / 32);
    scaled_sums32_ = arena.take<float>(max_rows * k_padded_ / 32);
  }
  if (kinds.bf16) bf16_ = arena.take<uint16_t>(max_rows * k_padded_);
  if (kinds.f32) f32_ = arena.take<float>(max_rows * k_padded_);
  if (repacked.any() || shape.keep_values) plain_ = arena.take<float>(max_rows * k_);
  if (!repacked.any()) return;
  const ActivationShape same = {.max_rows = max_rows, .k = k_, .readers = {}};
  for (auto& each : repacked_) each = std::make_unique<CpuLinearInput>(same, repacked, ActKinds{}, arena);
}

void CpuLinearInput::set_rows(int64_t rows) {
  if (rows == rows_) return;
  for (auto& each : repacked_) {
    if (each != nullptr) each->set_rows(rows);
  }
  rows_ = rows;
  panel_rows_ = split_panels(rows);
  panel_first_.clear();
  row_panel_.clear();
  int64_t first = 0;
  for (size_t i = 0; i < panel_rows_.size(); ++i) {
    panel_first_.push_back(first);
    first += panel_rows_[i];
    row_panel_.resize(static_cast<size_t>(first), static_cast<int32_t>(i));
  }
}

Panel CpuLinearInput::panel(int64_t index) const {
  const int64_t first = panel_first_[static_cast<size_t>(index)];
  Panel panel{};
  panel.rows = panel_rows_[static_cast<size_t>(index)];
  panel.power_of_two = kinds_.power_of_two;
  if (kinds_.i8) {
    panel.q = q_ + first * k_padded_;
    panel.scales = scales_ + first * k_padded_ / 32;
    panel.neg_sums16 = neg_sums16_ + first * k_padded_ / 16;
    panel.neg_sums32 = neg_sums32_ + first * k_padded_ / 32;
    panel.scaled_sums32 = scaled_sums32_ + first * k_padded_ / 32;
  }
  if (kinds_.bf16) panel.bf16 = bf16_ + first * k_padded_;
  if (kinds_.f32) panel.f32 = f32_ + first * k_padded_;
  return panel;
}

PanelSlot CpuLinearInput::slot(int64_t row) const {
  const int64_t index = row_panel_[static_cast<size_t>(row)];
  const int64_t first = panel_first_[static_cast<size_t>(index)];
  PanelSlot slot{};
  slot.rows = panel_rows_[static_cast<size_t>(index)];
  slot.slot = static_cast<int32_t>(row - first);
  slot.power_of_two = kinds_.power_of_two;
  if (kinds_.i8) {
    slot.q = q_ + first * k_padded_;
    slot.scales = scales_ + first * k_padded_ / 32;
    slot.neg_sums16 = neg_sums16_ + first * k_padded_ / 16;
    slot.neg_sums32 = neg_sums32_ + first * k_padded_ / 32;
    slot.scaled_sums32 = scaled_sums32_ + first * k_padded_ / 32;
  }
  if (kinds_.bf16) slot.bf16 = bf16_ + first * k_padded_;
  if (kinds_.f32) slot.f32 = f32_ + first * k_padded_;
  return slot;
}

void CpuLinearInput::store(const Kernels& kernels, int64_t row, const float* x, int64_t first_k, int64_t n) {
  if (plain_ != nullptr) std::copy_n(x, n, plain_ + row * k_ + first_k);
  const PanelSlot to = slot(row);
  auto put = [&](const float* values, int64_t at, int64_t count) {
    if (kinds_.i8) kernels.pack_i8(values, at, count, to);
    if (kinds_.bf16) kernels.pack_bf16(values, at, count, to);
    if (kinds_.f32) kernels.pack_f32(values, at, count, to);
  };
  const int64_t whole = n / 32 * 32;
  put(x, first_k, whole);
  int64_t end = first_k + whole;
  if (whole < n) {
    float padded[32] = {};
    std::copy(x + whole, x + n, padded);
    put(padded, end, 32);
    end += 32;
  }
  // Behind the last column lies at most one more group of 32.
  if (end >= k_ && end < k_padded_) {
    const float zeros[32] = {};
    put(zeros, end, 32);
  }
}

void CpuLinearInput::store_token(const Kernels& kernels, int64_t row, float* x) {
  if (kinds_.bf16 || kinds_.f32) store(kernels, row, x, 0, k_);
  std::fill(x + k_, x + k_padded_, 0.0f);
  if (kinds_.i8) kernels.pack_i8_token(x, k_padded_, slot(row));
}

}  // namespace quire::cpu
