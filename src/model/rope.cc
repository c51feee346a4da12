#include "model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace quire {
namespace {

double llama3_frequency(const RopeParams& p, double frequency) {
  const double wavelength = 2 * std::numbers::pi / frequency;
  const auto original = static_cast<double>(p.original_context);
  if (wavelength < original / p.high_freq_factor) return frequency;
  if (wavelength > original / p.low_freq_factor) return frequency / p.factor;
  const double smooth = (original / wavelength - p.low_freq_factor) / (p.high_freq_factor - p.low_freq_factor);
  return (1 - smooth) * frequency / p.factor + smooth * frequency;
}

// The dimension whose wavelength makes `rotations` turns over the original context.
double yarn_dimension(const RopeParams& p, double dim, double original, double rotations) {
  return dim * std::log(original / (rotations * 2 * std::numbers::pi)) / (2 * std::log(p.theta));
}

double yarn_magnitude(const RopeParams& p) {
  if (p.attention_factor.has_value()) return *p.attention_factor;
  auto scale = [&](double m) { return p.factor <= 1 ? 1.0 : 0.1 * m * std::log(p.factor) + 1; };
  if (p.mscale.has_value() && p.mscale_all_dim.has_value() && *p.mscale != 0 && *p.mscale_all_dim != 0) {
    return scale(*p.mscale) / scale(*p.mscale_all_dim);
  }
  return scale(1);
}

void scale_yarn(const RopeParams& p, double dim, double original, std::vector<double>& frequencies) {
  double low = yarn_dimension(p, dim, original, p.beta_fast);
  double high = yarn_dimension(p, dim, original, p.beta_slow);
  if (p.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dim - 1);
  const double width = high == low ? 0.001 : high - low;
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / width, 0.0, 1.0);
    frequencies[i] = frequencies[i] / p.factor * ramp + frequencies[i] * (1 - ramp);
  }
}

}  // namespace

RopeTable::RopeTable(const RopeParams& params, int64_t dim, int64_t context_length,
                     std::span<const float> frequency_factors) {
  const auto d = static_cast<double>(dim);
  for (int64_t i = 0; i < dim / 2; ++i) {
    inverse_frequencies_.push_back(std::pow(params.theta, -2.0 * static_cast<double>(i) / d));
  }
  const auto original = static_cast<double>(params.original_context > 0 ? params.original_context : context_length);
  switch (params.scaling) {
    case RopeScaling::kLinear:
      for (double& f : inverse_frequencies_) f /= params.factor;
      break;
    case RopeScaling::kLlama3:
      for (double& f : inverse_frequencies_) f = llama3_frequency(params, f);
      break;
    case RopeScaling::kYarn:
      scale_yarn(params, d, original, inverse_frequencies_);
      magnitude_ = yarn_magnitude(params);
      break;
    case RopeScaling::kNone:
    case RopeScaling::kLongrope:  // refused by the registry until a family needs them
    case RopeScaling::kDynamic:
      break;
  }
  for (size_t i = 0; i < frequency_factors.size() && i < inverse_frequencies_.size(); ++i) {
    inverse_frequencies_[i] /= static_cast<double>(frequency_factors[i]);
  }
}

void RopeTable::fill(int64_t position, float* cos, float* sin) const {
  for (size_t i = 0; i < inverse_frequencies_.size(); ++i) {
    const double angle = static_cast<double>(position) * inverse_frequencies_[i];
    cos[i] = static_cast<float>(std::cos(angle) * magnitude_);
    sin[i] = static_cast<float>(std::sin(angle) * magnitude_);
  }
}

std::vector<RopeTable> rope_tables(const Checkpoint& checkpoint, const ModelConfig& config) {
  std::vector<float> factors;
  if (const TensorRef* tensor = checkpoint.find("rope_freqs.weight")) {
    factors.resize(static_cast<size_t>(tensor->columns()));
    tensor->decode_f32(0, 1, factors.data());
  }
  std::vector<RopeTable> tables;
  for (const RopeParams& rope : config.ropes)
    tables.emplace_back(rope, config.rope_dim, config.context_length, factors);
  return tables;
}

}  // namespace quire
