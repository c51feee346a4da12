#include <algorithm>
#include <cmath>
#include <vector>

#include "quantize/awq.h"

namespace quire {
namespace {

constexpr int kClipSteps = 10;  // of the range, 5 % each

// Tries ranges of one unit of a row, each with the error that it leaves in the products.
class Clipper {
 public:
  Clipper(const GridSpec& spec, const Moments& moments, int64_t unit)
      : moments_(moments),
        grid_(spec, 1, unit),
        clipped_(static_cast<size_t>(unit)),
        best_(clipped_),
        difference_(clipped_) {}

  // `difference` is the unit's rounding error so far, and becomes that of the range chosen. `products` [count] are those of
  // the whole row's errors with the moments: groups read correlated inputs, so that their errors add up or cancel.
  void clip(float* w, float* difference, const float* products, int64_t first, int64_t count) {
    outside_.assign(products, products + count);
    for (int64_t i = 0; i < count; ++i) {
      const float* moment = moments_.products.data() + (first + i) * moments_.k + first;
      for (int64_t j = 0; j < count; ++j) outside_[static_cast<size_t>(j)] -= moment[j] * difference[i];
    }
    float largest = 0;
    for (int64_t i = 0; i < count; ++i) largest = std::max(largest, std::fabs(w[i]));
    double least = 0;
    for (int step = 0; step < kClipSteps; ++step) {
      const float limit = largest * (1 - static_cast<float>(step) / (2 * kClipSteps));
      for (int64_t i = 0; i < count; ++i) clipped_[static_cast<size_t>(i)] = std::clamp(w[i], -limit, limit);
      const double error = error_of(w, first, count);
      if (step > 0 && error >= least) continue;
      least = error;
      best_.swap(clipped_);
      std::copy_n(difference_.begin(), count, difference);
    }
    std::copy_n(best_.begin(), count, w);
  }

 private:
  double error_of(const float* w, int64_t first, int64_t count) {
    grid_.fit(0, 0, clipped_.data(), nullptr, count);
    for (int64_t i = 0; i < count; ++i) {
      const GroupParams& params = grid_.params(0, i / grid_.group());
      const uint8_t code =
          nearest_code(params, inverse_of(params.scale), grid_.levels(), clipped_[static_cast<size_t>(i)]);
      difference_[static_cast<size_t>(i)] = grid_.value_of(params, code) - w[i];
    }
    double error = 0;
    for (int64_t i = 0; i < count; ++i) {
      // Sixteen sums, which the compiler keeps in vectors.
      float sums[16] = {};
      const float* moment = moments_.products.data() + (first + i) * moments_.k + first;
      for (int64_t j = 0; j + 16 <= count; j += 16) {
        for (int64_t l = 0; l < 16; ++l) sums[l] += moment[j + l] * difference_[static_cast<size_t>(j + l)];
      }
      float sum = 0;
      for (int64_t j = count / 16 * 16; j < count; ++j) sum += moment[j] * difference_[static_cast<size_t>(j)];
      for (const float each : sums) sum += each;
      error += static_cast<double>(sum + 2 * outside_[static_cast<size_t>(i)]) * difference_[static_cast<size_t>(i)];
    }
    return error;
  }

  const Moments& moments_;
  Grid grid_;
  std::vector<float> clipped_, best_, difference_;
  std::vector<float> outside_;  // what the moments make of the errors of the row's other units
};

}  // namespace

void clip_for_awq(Device& device, const GridSpec& spec, const Moments& moments, std::vector<float>& values) {
  const int64_t k = moments.k;
  const auto n = static_cast<int64_t>(values.size()) / k;
  const int64_t unit = std::min(Grid(spec, 1, k).unit(), k);
  std::vector<float> difference(values);  // that rounding makes, by now
  round_values(device, spec, n, difference);
  device.parallel(n, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * k; i < end * k; ++i) difference[static_cast<size_t>(i)] -= values[static_cast<size_t>(i)];
  });
  std::vector<float> products(static_cast<size_t>(n * unit));
  for (int64_t first = 0; first < k; first += unit) {
    const int64_t count = std::min(unit, k - first);
    std::ranges::fill(products, 0.0f);
    device.matmul({.a = {difference.data(), k, 1},
                   .b = {moments.products.data() + first, 1, k},
                   .m = n,
                   .n = count,
                   .k = k,
                   .c = products.data(),
                   .c_stride = unit});
    device.parallel(n, [&](int64_t begin, int64_t end) {
      Clipper clipper(spec, moments, unit);
      for (int64_t row = begin; row < end; ++row) {
        const int64_t at = row * k + first;
        clipper.clip(values.data() + at, difference.data() + at, products.data() + row * unit, first, count);
      }
    });
  }
}

}  // namespace quire
