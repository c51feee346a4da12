#include "quantize/awq_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace quire {
namespace {

constexpr int kExponentSteps = 20;
constexpr float kLeastScale = 1e-4f;
constexpr int kBalanceSteps = 60;
constexpr int kBalancedPowers = 4;
constexpr int64_t kErrorRows =
    4096;  // of a group of linears, that the search looks at: an even choice where there are more

// The mean squared error of products with inputs of these moments, summed over rows: trace(d m d^T).
double product_error(Device& device, const Moments& moments, const std::vector<float>& difference, int64_t n) {
  const int64_t k = moments.k;
  std::vector<float> products(difference.size());
  device.matmul({.a = {difference.data(), k, 1},
                 .b = {moments.products.data(), 1, k},
                 .m = n,
                 .n = k,
                 .k = k,
                 .c = products.data(),
                 .c_stride = k});
  std::vector<double> sums(static_cast<size_t>(n));
  device.parallel(n, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      double sum = 0;
      for (int64_t i = row * k; i < (row + 1) * k; ++i)
        sum += static_cast<double>(products[static_cast<size_t>(i)]) * difference[static_cast<size_t>(i)];
      sums[static_cast<size_t>(row)] = sum;
    }
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

class ScaleSearch {
 public:
  ScaleSearch(Device& device, const GridSpec& spec, LayerParts& layer, const ScaledLinears& what)
      : device_(device), spec_(spec), what_(what), k_(what.moments.k), group_(Grid(spec, 1, k_).group()) {
    for (const LayerLinear linear : what.linears) n_ += layer.tensor(linear).rows();
    take_rows(layer);
    measure();
  }

  // Columns are to be multiplied by these.
  std::vector<float> best() {
    found_.assign(static_cast<size_t>(what_.scales), 1.0f);
    least_ = error_of(found_);
    for (int step = 1; step < kExponentSteps; ++step)
      consider(scales_by_magnitude(static_cast<float>(step) / kExponentSteps));
    const std::vector<float> balanced = balanced_scales();
    for (int step = 1; step <= kBalancedPowers; ++step) {
      std::vector<float> scales = balanced;
      for (float& scale : scales) scale = std::pow(scale, static_cast<float>(step) / kBalancedPowers);
      consider(std::move(scales));
    }
    return found_;
  }

 private:
  void take_rows(LayerParts& layer) {
    const int64_t every = (n_ + kErrorRows - 1) / kErrorRows;
    n_ = 0;
    for (const LayerLinear linear : what_.linears) {
      const std::vector<float>& values = layer.values(linear);
      for (int64_t row = 0; row < layer.tensor(linear).rows(); row += every, ++n_)
        weights_.insert(weights_.end(), values.begin() + row * k_, values.begin() + (row + 1) * k_);
    }
  }

  void consider(std::vector<float> scales) {
    const double error = error_of(scales);
    if (error >= least_) return;
    least_ = error;
    found_ = std::move(scales);
  }

  // The mean magnitude of each scale's inputs, and of its weights relative to the largest of their group.
  void measure() {
    inputs_.resize(static_cast<size_t>(what_.scales));
    relative_.resize(inputs_.size());
    std::vector<float> columns(inputs_.size());
    for (int64_t i = 0; i < k_; ++i) {
      inputs_[scale_at(i)] += what_.moments.magnitudes[static_cast<size_t>(i)];
      columns[scale_at(i)] += 1;
    }
    std::vector<double> sums(inputs_.size());
    for (int64_t row = 0; row < n_; ++row) {
      const float* w = weights_.data() + row * k_;
      for (int64_t first = 0; first < k_; first += group_) {
        const int64_t last = std::min(first + group_, k_);
        float largest = 1e-12f;
        for (int64_t i = first; i < last; ++i) largest = std::max(largest, std::fabs(w[i]));
        for (int64_t i = first; i < last; ++i) sums[scale_at(i)] += std::fabs(w[i]) / largest;
      }
    }
    for (size_t i = 0; i < inputs_.size(); ++i) {
      inputs_[i] /= columns[i];
      relative_[i] = static_cast<float>(sums[i] / (static_cast<double>(n_) * columns[i]));
    }
  }

  // The paper's family, weights counted in as AutoAWQ does.
  std::vector<float> scales_by_magnitude(float exponent) const {
    std::vector<float> scales(inputs_.size());
    for (size_t i = 0; i < scales.size(); ++i) {
      scales[i] =
          std::max(std::pow(inputs_[i], exponent) / (std::pow(relative_[i], 1 - exponent) + 1e-4f), kLeastScale);
    }
    const auto [least, most] = std::minmax_element(scales.begin(), scales.end());
    const float middle = std::sqrt(*least * *most);
    for (float& scale : scales) {
      scale /= middle;
      if (!std::isfinite(scale) || scale <= 0) scale = 1;
    }
    return scales;
  }

  // Scales that make the expected error least if rounding errors are spread evenly over a step: the sum over groups of
  // (squared steps, summed over rows) * (energies of the inputs over squared scales, summed over columns). That is convex in
  // the logarithms of the scales, and least where each column's share in setting steps is its share of the error.
  std::vector<float> balanced_scales() {
    const int64_t groups = (k_ + group_ - 1) / group_;
    std::vector<double> scales(inputs_.size(), 1.0);
    std::vector<double> best;
    double least = 0;
    double rate = 0.25;
    for (int step = 0; step < kBalanceSteps; ++step, rate *= 0.95) {
      const auto scale_of = [&](int64_t i) { return scales[scale_at(i)]; };
      const std::vector<double> steps = squared_steps(scales);
      std::vector<double> step_shares(inputs_.size()), error_shares(inputs_.size());
      double total = 0;
      for (int64_t g = 0; g < groups; ++g) {
        const int64_t last = std::min((g + 1) * group_, k_);
        double step_sum = 0, energy = 0;
        for (int64_t i = g * group_; i < last; ++i) {
          step_sum += steps[static_cast<size_t>(i)];
          energy += what_.moments.diagonal(i) / (scale_of(i) * scale_of(i));
        }
        const double error = step_sum * energy;
        total += error;
        // A column that sets no step would be scaled up without end, one without inputs down.
        const double least_share = 0.01 * error / static_cast<double>(group_);
        for (int64_t i = g * group_; i < last; ++i) {
          step_shares[scale_at(i)] += steps[static_cast<size_t>(i)] * energy + least_share;
          error_shares[scale_at(i)] += what_.moments.diagonal(i) / (scale_of(i) * scale_of(i)) * step_sum + least_share;
        }
      }
      if (step == 0 || total < least) {
        least = total;
        best = scales;
      }
      if (total == 0) break;
      for (size_t i = 0; i < scales.size(); ++i)
        scales[i] *= std::clamp(std::pow(error_shares[i] / step_shares[i], rate), 2.0 / 3, 3.0 / 2);
    }
    return {best.begin(), best.end()};
  }

  // What each column, scaled, adds to the sum of squared steps: the squares of the weights that are the largest of a group.
  std::vector<double> squared_steps(const std::vector<double>& scales) {
    std::vector<double> sums(static_cast<size_t>(k_));
    device_.parallel((k_ + group_ - 1) / group_, [&](int64_t begin, int64_t end) {
      std::vector<float> columns;
      for (int64_t i = begin * group_; i < std::min(end * group_, k_); ++i)
        columns.push_back(static_cast<float>(scales[scale_at(i)]));
      for (int64_t row = 0; row < n_; ++row) {
        const float* w = weights_.data() + row * k_;
        for (int64_t first = begin * group_; first < std::min(end * group_, k_); first += group_) {
          float largest = 0;
          int64_t at = first;
          for (int64_t i = first; i < std::min(first + group_, k_); ++i) {
            const float scaled = std::fabs(w[i]) * columns[static_cast<size_t>(i - begin * group_)];
            if (scaled > largest) {
              largest = scaled;
              at = i;
            }
          }
          sums[static_cast<size_t>(at)] += static_cast<double>(largest) * largest;
        }
      }
    });
    return sums;
  }

  double error_of(const std::vector<float>& scales) {
    std::vector<float> rounded(weights_);
    device_.parallel(n_, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin * k_; at < end * k_; ++at) rounded[static_cast<size_t>(at)] *= scales[scale_at(at % k_)];
    });
    round_values(device_, spec_, n_, rounded);
    device_.parallel(n_, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin * k_; at < end * k_; ++at) {
        float& value = rounded[static_cast<size_t>(at)];
        value = value / scales[scale_at(at % k_)] - weights_[static_cast<size_t>(at)];
      }
    });
    return product_error(device_, what_.moments, rounded, n_);
  }

  size_t scale_at(int64_t column) const {
    return what_.scale_of.empty() ? static_cast<size_t>(column)
                                  : static_cast<size_t>(what_.scale_of[static_cast<size_t>(column)]);
  }

  Device& device_;
  const GridSpec& spec_;
  const ScaledLinears& what_;
  int64_t k_;
  int64_t group_;
  int64_t n_ = 0;
  std::vector<float> weights_;  // [n][k]
  std::vector<float> inputs_, relative_;
  std::vector<float> found_;
  double least_ = 0;
};

}  // namespace

std::vector<float> search_scales(Device& device, const GridSpec& spec, LayerParts& layer, const ScaledLinears& what) {
  return ScaleSearch(device, spec, layer, what).best();
}

}  // namespace quire
