#include "tensor/block_grid.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "tensor/quant/q4_0.h"
#include "tensor/quant/q4_1.h"
#include "tensor/quant/q4_k.h"
#include "tensor/quant/q6_k.h"
#include "tensor/quant/q8_0.h"

namespace quire {
namespace {

constexpr float kTooSmall = 1e-15f;  // a group whose largest weight is below this is 0

constexpr std::array kGrids = {
    BlockGrid{DType::kQ4_0, 32, 15, fit_q4_0, params_q4_0, put_q4_0},
    BlockGrid{DType::kQ4_1, 32, 15, fit_q4_1, params_q4_1, put_q4_1},
    BlockGrid{DType::kQ8_0, 32, 255, fit_q8_0, params_q8_0, put_q8_0},
    BlockGrid{DType::kQ4_K, 32, 15, fit_q4_k, params_q4_k, put_q4_k},
    BlockGrid{DType::kQ6_K, 16, 63, fit_q6_k, params_q6_k, put_q6_k},
};

}  // namespace

const BlockGrid* block_grid(DType dtype) {
  const auto found = std::ranges::find(kGrids, dtype, &BlockGrid::dtype);
  return found == kGrids.end() ? nullptr : &*found;
}

double rounding_error(const GroupParams& params, int levels, const float* values, const float* importance, int64_t n) {
  const float inverse = inverse_of(params.scale);
  double error = 0;
  for (int64_t i = 0; i < n; ++i) {
    const auto code = static_cast<float>(nearest_code(params, inverse, levels, values[i]));
    const float distance = params.scale * code + params.offset - values[i];
    error += importance[i] * distance * distance;
  }
  return error;
}

float search_scale(const float* values, const float* importance, int n, int steps) {
  float largest = 0;  // with its sign
  for (int i = 0; i < n; ++i) {
    if (std::fabs(values[i]) > std::fabs(largest)) largest = values[i];
  }
  if (std::fabs(largest) < kTooSmall) return 0;
  float scale = 0;
  float best = 0;
  const auto consider = [&](float inverse, bool first) {
    float products = 0;
    float squares = 0;
    for (int i = 0; i < n; ++i) {
      const float code =
          std::clamp(std::nearbyint(inverse * values[i]), static_cast<float>(-steps), static_cast<float>(steps - 1));
      products += importance[i] * values[i] * code;
      squares += importance[i] * code * code;
    }
    if (first) {
      scale = squares > 0 ? products / squares : 0;
      best = scale * products;
    } else if (squares > 0 && products * products > best * squares) {
      scale = products / squares;
      best = scale * products;
    }
  };
  const auto least = static_cast<float>(-steps);
  consider(least / largest, true);
  for (int step = -9; step <= 9; ++step) {
    if (step != 0) consider((least - 0.1f * static_cast<float>(step)) / largest, false);
  }
  return scale;
}

namespace {

// The scale and offset of least weighted squared error for given codes: a line through (code, value).
struct LineFit {
  float weights = 0, values = 0, codes = 0, codes2 = 0, products = 0;

  void add(float weight, float value, float code) {
    weights += weight;
    values += weight * value;
    codes += weight * code;
    codes2 += weight * code * code;
    products += weight * value * code;
  }
  GroupParams solve(bool offset_limit) const {
    const float determinant = weights * codes2 - codes * codes;
    if (!(determinant > 0)) return {};
    GroupParams found = {.scale = (weights * products - values * codes) / determinant,
                         .offset = (codes2 * values - codes * products) / determinant};
    if (offset_limit && found.offset > 0) found = {.scale = products / codes2, .offset = 0};
    return found;
  }
};

}  // namespace

GroupParams search_affine(const float* values, const float* importance, int n, int levels, bool offset_limit) {
  const auto [low, high] = std::minmax_element(values, values + n);
  const float least = offset_limit ? std::min(*low, 0.0f) : *low;
  const float range = *high - least;
  if (!(range > kTooSmall)) return {.scale = 0, .offset = least};
  const auto error_of = [&](const GroupParams& params) {
    return rounding_error(params, levels, values, importance, n);
  };
  GroupParams best = {.scale = range / static_cast<float>(levels), .offset = least};
  double best_error = error_of(best);
  for (int step = -10; step <= 10; ++step) {
    const float steps = static_cast<float>(levels) + 0.1f * static_cast<float>(step);
    const GroupParams start = {.scale = range / steps, .offset = least};
    LineFit line;
    for (int i = 0; i < n; ++i) {
      line.add(importance[i], values[i], static_cast<float>(nearest_code(start, 1 / start.scale, levels, values[i])));
    }
    const GroupParams found = line.solve(offset_limit);
    if (!(found.scale > 0)) continue;
    const double error = error_of(found);
    if (error < best_error) {
      best = found;
      best_error = error;
    }
  }
  return best;
}

}  // namespace quire
