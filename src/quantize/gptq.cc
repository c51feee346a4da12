#include "quantize/gptq.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "base/check.h"
#include "quantize/inverse_factor.h"

namespace quire {
namespace {

constexpr int64_t kColumns = 128;  // whose errors are kept apart before they reach the columns behind
constexpr int kDampTries = 8;

// Runs of `unit` columns by their largest diagonal, keeping the order that they have inside.
void sort_units(const Moments& moments, int64_t unit, std::vector<int32_t>& order) {
  std::vector<float> largest(static_cast<size_t>((moments.k + unit - 1) / unit));
  for (int64_t i = 0; i < moments.k; ++i) {
    float& of_unit = largest[static_cast<size_t>(i / unit)];
    of_unit = std::max(of_unit, moments.diagonal(i));
  }
  // A last one that is shorter stays last: places are counted in whole units.
  if (moments.k % unit != 0) largest.back() = 0;
  std::ranges::stable_sort(order, [&](int32_t a, int32_t b) {
    const int64_t unit_a = a / unit, unit_b = b / unit;
    const float largest_a = largest[static_cast<size_t>(unit_a)], largest_b = largest[static_cast<size_t>(unit_b)];
    return largest_a != largest_b ? largest_a > largest_b : unit_a < unit_b;
  });
}

std::vector<int32_t> order_of(const Moments& moments, const Grid& grid, bool any_column) {
  std::vector<int32_t> order(static_cast<size_t>(moments.k));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int32_t a, int32_t b) { return moments.diagonal(a) > moments.diagonal(b); });
  if (any_column) return order;
  sort_units(moments, grid.group(), order);
  if (grid.unit() != grid.group()) sort_units(moments, grid.unit(), order);
  return order;
}

std::vector<float> reordered(Device& device, const Moments& moments, std::span<const int32_t> order) {
  std::vector<float> out(moments.products.size());
  const int64_t k = moments.k;
  device.parallel(k, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float* row = moments.products.data() + order[static_cast<size_t>(i)] * k;
      for (int64_t j = 0; j < k; ++j) out[static_cast<size_t>(i * k + j)] = row[order[static_cast<size_t>(j)]];
    }
  });
  return out;
}

}  // namespace

Result<GptqPlan> GptqPlan::create(Device& device, Moments moments, const GridSpec& spec, const GptqOptions& options) {
  GptqPlan plan;
  plan.k_ = moments.k;
  plan.options_ = options;
  plan.dead_.resize(static_cast<size_t>(moments.k));
  double sum = 0;
  for (int64_t i = 0; i < moments.k; ++i) {
    float& diagonal = moments.products[static_cast<size_t>(i * moments.k + i)];
    sum += diagonal;
    if (diagonal != 0) continue;
    plan.dead_[static_cast<size_t>(i)] = 1;
    diagonal = 1;
  }
  const Grid grid(spec, 1, moments.k);
  plan.unit_ = grid.unit();
  plan.group_ = grid.group();
  plan.order_ = order_of(moments, grid, options.act_order);
  const double mean = sum / static_cast<double>(moments.k);
  plan.damp_ = options.damp;
  for (int tries = 0; tries < kDampTries; ++tries, plan.damp_ = 2 * plan.damp_ + 0.01) {
    plan.factor_ = reordered(device, moments, plan.order_);
    for (int64_t i = 0; i < moments.k; ++i)
      plan.factor_[static_cast<size_t>(i * moments.k + i)] += static_cast<float>(plan.damp_ * mean);
    if (upper_inverse_factor(device, plan.factor_, moments.k)) return plan;
  }
  return invalid_argument("the second moments of a linear's inputs cannot be factored, even with " +
                          std::to_string(plan.damp_) +
                          " of their mean on the diagonal: the text gives it no usable input");
}

namespace {

// One quantization: the matrix with its columns in the order of the plan.
struct Walk {
  const GridSpec& spec;
  Grid& grid;
  std::span<const float> factor;
  std::span<const int32_t> order;
  const GptqOptions& options;
  int64_t k;
  std::vector<float>& weights;  // [n][k]
  std::vector<uint8_t>& codes;  // [n][k]
  std::vector<float> errors;    // [n][kColumns]

  // Groups are formed of the columns as they come, or are those of the model.
  bool groups_by_place() const { return options.act_order && !options.static_groups; }
  int64_t column_at(int64_t place) const { return order[static_cast<size_t>(place)]; }
  int64_t group_at(int64_t place) const { return (groups_by_place() ? place : column_at(place)) / grid.group(); }
  float pivot(int64_t i) const { return factor[static_cast<size_t>(i * k + i)]; }

  // The unit that begins at a place, in the order of the model's columns where its groups are those.
  void fit_unit(int64_t row, int64_t place, const float* w, const float* costs) {
    const int64_t count = std::min(grid.unit(), k - place);
    if (groups_by_place()) {
      grid.fit(row, place / grid.unit(), w + place, costs + place, count);
      return;
    }
    const int64_t unit = column_at(place) / grid.unit();
    std::vector<float> values(static_cast<size_t>(count)), importance(values.size());
    for (int64_t i = place; i < place + count; ++i) {
      const auto at = static_cast<size_t>(column_at(i) - unit * grid.unit());
      values[at] = w[i];
      importance[at] = costs[i];
    }
    grid.fit(row, unit, values.data(), importance.data(), count);
  }

  // Columns [first, last) of one row.
  void row_block(int64_t row, int64_t first, int64_t last, const float* costs) {
    float* w = weights.data() + row * k;
    for (int64_t i = first; i < last; ++i) {
      if (!options.static_groups && i % grid.unit() == 0) fit_unit(row, i, w, costs);
      const GroupParams& params = grid.params(row, group_at(i));
      const uint8_t code = nearest_code(params, inverse_of(params.scale), grid.levels(), w[i]);
      codes[static_cast<size_t>(row * k + i)] = code;
      const float error = (w[i] - grid.value_of(params, code)) / pivot(i);
      errors[static_cast<size_t>(row * kColumns + i - first)] = error;
      const float* u = factor.data() + i * k;
      for (int64_t j = i + 1; j < last; ++j) w[j] -= error * u[j];
    }
  }
};

}  // namespace

QuantizedRows GptqPlan::quantize(Device& device, const GridSpec& spec, int64_t n, std::vector<float> weights) const {
  Grid grid(spec, n, k_);
  QUIRE_CHECK(grid.unit() == unit_ && grid.group() == group_);  // which order_ keeps together
  // What an error in a column costs once those behind it have made up for it as far as they can, by place and by column.
  std::vector<float> costs(static_cast<size_t>(k_)), column_costs(costs.size());
  for (int64_t i = 0; i < k_; ++i) {
    const float pivot = factor_[static_cast<size_t>(i * k_ + i)];
    costs[static_cast<size_t>(i)] = 1 / (pivot * pivot);
    column_costs[static_cast<size_t>(order_[static_cast<size_t>(i)])] = costs[static_cast<size_t>(i)];
  }
  device.parallel(n, [&](int64_t begin, int64_t end) {
    std::vector<float> ordered(static_cast<size_t>(k_));
    for (int64_t row = begin; row < end; ++row) {
      float* w = weights.data() + row * k_;
      for (int64_t i = 0; i < k_; ++i) {
        if (dead_[static_cast<size_t>(i)] != 0) w[i] = 0;
      }
      if (options_.static_groups) {
        for (int64_t i = 0; i < k_; i += grid.unit())
          grid.fit(row, i / grid.unit(), w + i, column_costs.data() + i, std::min(grid.unit(), k_ - i));
      }
      for (int64_t i = 0; i < k_; ++i) ordered[static_cast<size_t>(i)] = w[order_[static_cast<size_t>(i)]];
      std::ranges::copy(ordered, w);
    }
  });
  std::vector<uint8_t> codes(weights.size());
  Walk walk = {.spec = spec,
               .grid = grid,
               .factor = factor_,
               .order = order_,
               .options = options_,
               .k = k_,
               .weights = weights,
               .codes = codes,
               .errors = std::vector<float>(static_cast<size_t>(n * kColumns))};
  for (int64_t first = 0; first < k_; first += kColumns) {
    const int64_t last = std::min(first + kColumns, k_);
    device.parallel(n, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) walk.row_block(row, first, last, costs.data());
    });
    device.matmul({.a = {walk.errors.data(), kColumns, 1},
                   .b = {factor_.data() + first * k_ + last, 1, k_},
                   .m = n,
                   .n = k_ - last,
                   .k = last - first,
                   .alpha = -1,
                   .c = weights.data() + last,
                   .c_stride = k_});
  }
  std::vector<uint8_t> plain(codes.size());
  std::vector<int32_t> group_of(static_cast<size_t>(k_));
  for (int64_t i = 0; i < k_; ++i)
    group_of[static_cast<size_t>(order_[static_cast<size_t>(i)])] = static_cast<int32_t>(walk.group_at(i));
  device.parallel(n, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t i = 0; i < k_; ++i) {
        plain[static_cast<size_t>(row * k_ + order_[static_cast<size_t>(i)])] =
            codes[static_cast<size_t>(row * k_ + i)];
      }
    }
  });
  if (!walk.groups_by_place()) group_of.clear();
  return grid.finish(std::move(plain), std::move(group_of));
}

QuantizedRows round_to_nearest(Device& device, const GridSpec& spec, int64_t n, std::span<const float> weights,
                               std::span<const float> importance) {
  const auto k = static_cast<int64_t>(weights.size()) / n;
  Grid grid(spec, n, k);
  std::vector<uint8_t> codes(weights.size());
  device.parallel(n, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* w = weights.data() + row * k;
      for (int64_t i = 0; i < k; i += grid.unit()) {
        grid.fit(row, i / grid.unit(), w + i, importance.empty() ? nullptr : importance.data() + i,
                 std::min(grid.unit(), k - i));
      }
      for (int64_t i = 0; i < k; ++i) {
        const GroupParams& params = grid.params(row, i / grid.group());
        codes[static_cast<size_t>(row * k + i)] = nearest_code(params, inverse_of(params.scale), grid.levels(), w[i]);
      }
    }
  });
  return grid.finish(std::move(codes), {});
}

void round_values(Device& device, const GridSpec& spec, int64_t n, std::vector<float>& values) {
  const auto k = static_cast<int64_t>(values.size()) / n;
  const QuantizedRows rows = round_to_nearest(device, spec, n, values, {});
  device.parallel(n, [&](int64_t begin, int64_t end) {
    decode_rows(spec, rows, begin, end - begin, k, values.data() + begin * k);
  });
}

}  // namespace quire
