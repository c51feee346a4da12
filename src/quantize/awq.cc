#include "quantize/awq.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>

namespace quire {
namespace {

constexpr int kExponentSteps = 20;
constexpr float kLeastScale = 1e-4f;
constexpr int kClipSteps = 10;  // of the range, 5 % each
constexpr int64_t kErrorRows =
    4096;  // of a group of linears, that the search looks at: an even choice where there are more

// A linear's weights after rounding, in place.
void round_values(Device& device, const GridSpec& spec, int64_t n, std::vector<float>& values) {
  const auto k = static_cast<int64_t>(values.size()) / n;
  const QuantizedRows rows = round_to_nearest(device, spec, n, values, {});
  device.parallel(n, [&](int64_t begin, int64_t end) {
    decode_rows(spec, rows, begin, end - begin, k, values.data() + begin * k);
  });
}

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

// Linears that read one input, scaled together.
struct Scaled {
  const Moments& moments;
  std::vector<LayerLinear> linears;
  // The scale that each column of the linears follows: several columns may share one. Empty: its own.
  std::vector<int32_t> scale_of;
  int64_t scales = 0;
};

class ScaleSearch {
 public:
  ScaleSearch(Device& device, const GridSpec& spec, LayerParts& layer, const Scaled& what)
      : device_(device), spec_(spec), what_(what), k_(what.moments.k) {
    for (const LayerLinear linear : what.linears) n_ += layer.tensor(linear).rows();
    take_rows(layer);
    measure();
  }

  // Columns are to be multiplied by these.
  std::vector<float> best() {
    std::vector<float> found(static_cast<size_t>(what_.scales), 1.0f);
    double least = error_of(found);
    for (int step = 1; step < kExponentSteps; ++step) {
      const std::vector<float> tried = scales_of(static_cast<float>(step) / kExponentSteps);
      const double error = error_of(tried);
      if (error < least) {
        least = error;
        found = tried;
      }
    }
    return found;
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

  // The mean magnitude of each scale's inputs, and of its weights relative to the largest of their group.
  void measure() {
    inputs_.resize(static_cast<size_t>(what_.scales));
    relative_.resize(inputs_.size());
    std::vector<float> columns(inputs_.size());
    const int64_t group =
        spec_.group == 0 || spec_.blocks != nullptr ? (spec_.blocks ? spec_.blocks->group : k_) : spec_.group;
    for (int64_t i = 0; i < k_; ++i) {
      inputs_[scale_at(i)] += what_.moments.magnitudes[static_cast<size_t>(i)];
      columns[scale_at(i)] += 1;
    }
    std::vector<double> sums(inputs_.size());
    for (int64_t row = 0; row < n_; ++row) {
      const float* w = weights_.data() + row * k_;
      for (int64_t first = 0; first < k_; first += group) {
        const int64_t last = std::min(first + group, k_);
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

  std::vector<float> scales_of(float exponent) const {
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
  const Scaled& what_;
  int64_t k_;
  int64_t n_ = 0;
  std::vector<float> weights_;  // [n][k]
  std::vector<float> inputs_, relative_;
};

// Multiplies columns, and shrinks what they read.
void apply(Device& device, LayerParts& layer, const Scaled& what, std::span<const float> scales, Moments& moments) {
  const int64_t k = moments.k;
  std::vector<float> columns(static_cast<size_t>(k));
  for (size_t i = 0; i < columns.size(); ++i)
    columns[i] = scales[what.scale_of.empty() ? i : static_cast<size_t>(what.scale_of[i])];
  for (const LayerLinear linear : what.linears) {
    std::vector<float>& values = layer.values(linear);
    device.parallel(layer.tensor(linear).rows(), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        for (int64_t i = 0; i < k; ++i) values[static_cast<size_t>(row * k + i)] *= columns[static_cast<size_t>(i)];
      }
    });
  }
  device.parallel(k, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t j = 0; j < k; ++j)
        moments.products[static_cast<size_t>(i * k + j)] /=
            columns[static_cast<size_t>(i)] * columns[static_cast<size_t>(j)];
      moments.magnitudes[static_cast<size_t>(i)] /= columns[static_cast<size_t>(i)];
    }
  });
}

void divide(std::vector<float>* vector, std::span<const float> scales) {
  if (vector == nullptr) return;
  for (size_t i = 0; i < scales.size(); ++i) (*vector)[i] /= scales[i];
}

// The rows of a linear and their biases.
void divide_rows(LayerParts& layer, LayerLinear linear, std::string_view bias, std::span<const float> scales) {
  std::vector<float>& values = layer.values(linear);
  const int64_t k = layer.tensor(linear).columns();
  for (size_t row = 0; row < scales.size(); ++row) {
    for (int64_t i = 0; i < k; ++i) values[row * static_cast<size_t>(k) + static_cast<size_t>(i)] /= scales[row];
  }
  divide(layer.vector(bias), scales);
}

// Tries ranges of one unit of a row, each with the error that it leaves in the products.
class Clipper {
 public:
  Clipper(const GridSpec& spec, const Moments& moments, int64_t unit)
      : moments_(moments),
        grid_(spec, 1, unit),
        clipped_(static_cast<size_t>(unit)),
        best_(clipped_),
        difference_(clipped_) {}

  void clip(float* w, int64_t first, int64_t count) {
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
      error += static_cast<double>(sum) * difference_[static_cast<size_t>(i)];
    }
    return error;
  }

  const Moments& moments_;
  Grid grid_;
  std::vector<float> clipped_, best_, difference_;
};

}  // namespace

void scale_for_awq(Device& device, const ModelConfig& config, const GridChoice& grid, LayerParts& layer,
                   LayerMoments& moments) {
  const auto search = [&](LayerInput input, std::vector<LayerLinear> linears, std::vector<int32_t> scale_of,
                          int64_t scales, const std::function<void(std::span<const float>)>& precede) {
    Moments& at = moments[static_cast<size_t>(input)];
    const Scaled what = {
        .moments = at, .linears = std::move(linears), .scale_of = std::move(scale_of), .scales = scales};
    const GridSpec spec = grid(layer.tensor(what.linears.front()));
    const std::vector<float> found = ScaleSearch(device, spec, layer, what).best();
    apply(device, layer, what, found, at);
    precede(found);
  };
  using L = LayerLinear;
  search(LayerInput::kAttention, {L::kQ, L::kK, L::kV}, {}, config.hidden,
         [&](std::span<const float> scales) { divide(layer.vector("attn_norm.weight"), scales); });
  // A channel of V meets all query heads that share it.
  const HeadShape& shape = config.heads;
  std::vector<int32_t> value_channel(static_cast<size_t>(shape.heads * shape.head_dim));
  for (int64_t i = 0; i < shape.heads * shape.head_dim; ++i) {
    const int64_t kv_head = i / shape.head_dim / (shape.heads / shape.kv_heads);
    value_channel[static_cast<size_t>(i)] = static_cast<int32_t>(kv_head * shape.head_dim + i % shape.head_dim);
  }
  search(LayerInput::kAttentionOutput, {L::kO}, std::move(value_channel), shape.kv_heads * shape.head_dim,
         [&](std::span<const float> scales) { divide_rows(layer, L::kV, "attn_v.bias", scales); });
  search(LayerInput::kFfn, {L::kGate, L::kUp}, {}, config.hidden,
         [&](std::span<const float> scales) { divide(layer.vector("ffn_norm.weight"), scales); });
  search(LayerInput::kFfnMiddle, {L::kDown}, {}, config.ffn_hidden,
         [&](std::span<const float> scales) { divide_rows(layer, L::kUp, "ffn_up.bias", scales); });
}

void clip_for_awq(Device& device, const GridSpec& spec, const Moments& moments, std::vector<float>& values) {
  const int64_t k = moments.k;
  const auto n = static_cast<int64_t>(values.size()) / k;
  const int64_t unit = Grid(spec, 1, k).unit();
  device.parallel(n, [&](int64_t begin, int64_t end) {
    Clipper clipper(spec, moments, std::min(unit, k));
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t first = 0; first < k; first += unit)
        clipper.clip(values.data() + row * k + first, first, std::min(unit, k - first));
    }
  });
}

}  // namespace quire
