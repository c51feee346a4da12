#include "quantize/grid.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "tensor/half.h"

namespace quire {
namespace {

// A scale that f16 holds and that is not 0: the least one for values that are too small to matter.
float f16_scale(float scale) { return std::max(f16_to_f32(f32_to_f16(std::min(scale, 65504.0f))), 0x1p-24f); }

struct IntGroup {
  float scale = 0;
  int zero = 0;
};

// GPTQ's grid: the range of the values and 0, its largest magnitude on both sides when symmetric. Shrunk to `share` of it.
IntGroup int_group(const float* values, int64_t count, const GridSpec& spec, float share) {
  const auto levels = static_cast<float>((1 << spec.bits) - 1);
  const auto [least, most] = std::minmax_element(values, values + count);
  float low = std::min(*least, 0.0f) * share;
  float high = std::max(*most, 0.0f) * share;
  if (low == 0 && high == 0) {
    low = -1;
    high = 1;
  }
  if (spec.symmetric) {
    high = std::max(-low, high);
    return {.scale = f16_scale(2 * high / levels), .zero = 1 << (spec.bits - 1)};
  }
  const float scale = f16_scale((high - low) / levels);
  return {.scale = scale, .zero = static_cast<int>(std::clamp(std::round(-low / scale), 0.0f, levels))};
}

GroupParams params_of(const IntGroup& group) {
  return {.scale = group.scale, .offset = -group.scale * static_cast<float>(group.zero)};
}

constexpr int kShrinkSteps = 20;  // of the range, 2 % each

}  // namespace

Grid::Grid(const GridSpec& spec, int64_t n, int64_t k) : spec_(spec), n_(n), k_(k) {
  if (spec.blocks != nullptr) {
    const DTypeInfo& info = dtype_info(spec.blocks->dtype);
    unit_ = info.block_elements;
    group_ = spec.blocks->group;
    levels_ = spec.blocks->levels;
    result_.blocks.resize(static_cast<size_t>(n * row_bytes(spec.blocks->dtype, k)));
  } else {
    group_ = spec.group == 0 ? k : spec.group;
    unit_ = group_;
    levels_ = (1 << spec.bits) - 1;
  }
  groups_ = (k + group_ - 1) / group_;
  params_.resize(static_cast<size_t>(n * groups_));
  if (spec.blocks != nullptr) return;
  QuantizedMatrix& codes = result_.codes;
  codes.bits = spec.bits;
  codes.n = n;
  codes.k = k;
  codes.group = group_;
  codes.scales.resize(params_.size());
  codes.zeros.resize(params_.size());
}

void Grid::fit(int64_t row, int64_t unit, const float* values, const float* importance, int64_t count) {
  if (spec_.blocks == nullptr) {
    fit_codes(row, unit, values, importance, count);
    return;
  }
  QUIRE_CHECK(count == unit_);
  std::vector<float> even;
  if (importance == nullptr) {
    even.assign(static_cast<size_t>(count), 1.0f);
    importance = even.data();
  }
  const DTypeInfo& info = dtype_info(spec_.blocks->dtype);
  std::byte* block = result_.blocks.data() + row * row_bytes(info.dtype, k_) + unit * info.block_bytes;
  spec_.blocks->fit(values, importance, block);
  spec_.blocks->params(block, params_.data() + row * groups_ + unit * (unit_ / group_));
}

void Grid::fit_codes(int64_t row, int64_t group, const float* values, const float* importance, int64_t count) {
  IntGroup best = int_group(values, count, spec_, 1);
  if (importance != nullptr) {
    double best_error = rounding_error(params_of(best), levels_, values, importance, count);
    for (int step = 1; step <= kShrinkSteps; ++step) {
      const IntGroup tried = int_group(values, count, spec_, 1 - 0.02f * static_cast<float>(step));
      const double error = rounding_error(params_of(tried), levels_, values, importance, count);
      if (error < best_error) {
        best_error = error;
        best = tried;
      }
    }
  }
  const auto at = static_cast<size_t>(row * groups_ + group);
  params_[at] = params_of(best);
  result_.codes.scales[at] = best.scale;
  result_.codes.zeros[at] = static_cast<uint8_t>(best.zero);
}

QuantizedRows Grid::finish(std::vector<uint8_t> codes, std::vector<int32_t> group_of) {
  if (spec_.blocks == nullptr) {
    result_.codes.codes = std::move(codes);
    result_.codes.group_of = std::move(group_of);
    return std::move(result_);
  }
  const DTypeInfo& info = dtype_info(spec_.blocks->dtype);
  const int64_t blocks = n_ * k_ / unit_;
  for (int64_t b = 0; b < blocks; ++b)
    spec_.blocks->put(codes.data() + b * unit_, result_.blocks.data() + b * info.block_bytes);
  return std::move(result_);
}

void decode_rows(const GridSpec& spec, const QuantizedRows& rows, int64_t first, int64_t count, int64_t k, float* out) {
  if (spec.blocks != nullptr) {
    const DTypeInfo& info = dtype_info(spec.blocks->dtype);
    info.decode(rows.blocks.data() + first * row_bytes(info.dtype, k), count * k / info.block_elements, out);
    return;
  }
  const QuantizedMatrix& m = rows.codes;
  const int64_t groups = (k + m.group - 1) / m.group;
  for (int64_t row = first; row < first + count; ++row) {
    for (int64_t i = 0; i < k; ++i) {
      const int64_t group = m.group_of.empty() ? i / m.group : m.group_of[static_cast<size_t>(i)];
      const auto at = static_cast<size_t>(row * groups + group);
      *out++ = m.scales[at] * static_cast<float>(m.codes[static_cast<size_t>(row * k + i)] - m.zeros[at]);
    }
  }
}

}  // namespace quire
