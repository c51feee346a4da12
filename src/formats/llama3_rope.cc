#include "formats/llama3_rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace quire {
namespace {

double wavelength(double theta, int64_t pair, int64_t rope_dim) {
  return 2 * std::numbers::pi * std::pow(theta, 2.0 * static_cast<double>(pair) / static_cast<double>(rope_dim));
}

double factor_at(const RopeParams& rope, double length) {
  const auto original = static_cast<double>(rope.original_context);
  if (length < original / rope.high_freq_factor) return 1.0;
  if (length > original / rope.low_freq_factor) return rope.factor;
  const double smooth = (original / length - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor);
  return 1 / ((1 - smooth) / rope.factor + smooth);
}

bool explains(const RopeParams& rope, std::span<const float> factors) {
  constexpr float kTolerance = 1e-5f;  // files hold f32, computed in f32 or f64
  const std::vector<float> given = llama3_factors(rope, 2 * static_cast<int64_t>(factors.size()));
  return std::ranges::equal(given, factors, [](float a, float b) { return std::fabs(a - b) <= kTolerance * b; });
}

}  // namespace

std::vector<float> llama3_factors(const RopeParams& rope, int64_t rope_dim) {
  std::vector<float> factors;
  for (int64_t i = 0; i < rope_dim / 2; ++i) {
    factors.push_back(static_cast<float>(factor_at(rope, wavelength(rope.theta, i, rope_dim))));
  }
  return factors;
}

std::optional<RopeParams> rope_from_llama3_factors(const RopeParams& rope, std::span<const float> factors) {
  if (std::ranges::all_of(factors, [](float factor) { return factor == 1.0f; })) return rope;
  RopeParams found = rope;
  found.scaling = RopeScaling::kLlama3;
  found.factor = static_cast<double>(*std::ranges::max_element(factors));
  found.low_freq_factor = 1.0;
  // Of the numbers that give the same factors, those that models are made with.
  constexpr double kHighFactors[] = {4.0, 2.0, 8.0, 16.0, 32.0};
  constexpr int64_t kUsualContext = 8192;
  for (const double high : kHighFactors) {
    found.high_freq_factor = high;
    found.original_context = kUsualContext;
    if (explains(found, factors)) return found;
    for (int64_t context = 16; context <= int64_t{1} << 24; context *= 2) {
      found.original_context = context;
      if (explains(found, factors)) return found;
    }
  }
  return std::nullopt;
}

}  // namespace quire
