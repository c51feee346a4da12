#include "eval/statistics.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/philox.h"

namespace quire {
namespace {

constexpr int kResamples = 2000;
constexpr uint64_t kBootstrapSeed = 1;

template <typename Get>
double sum(std::span<const WindowScore> windows, Get get) {
  double total = 0;
  for (const WindowScore& window : windows) total += static_cast<double>(get(window));
  return total;
}

double token_count(std::span<const WindowScore> windows) {
  return sum(windows, [](const WindowScore& window) { return window.tokens; });
}

// The mean over tokens, and the spread of its means over windows, which are equally long.
template <typename Get>
Estimate mean_over_windows(std::span<const WindowScore> windows, Get get) {
  QUIRE_CHECK(!windows.empty());
  Estimate estimate{.value = sum(windows, get) / token_count(windows), .error = std::nullopt};
  if (windows.size() < 2) return estimate;
  double squares = 0;
  for (const WindowScore& window : windows) {
    const double difference = static_cast<double>(get(window)) / static_cast<double>(window.tokens) - estimate.value;
    squares += difference * difference;
  }
  const auto n = static_cast<double>(windows.size());
  estimate.error = std::sqrt(squares / (n - 1) / n);
  return estimate;
}

template <typename Get>
double largest(std::span<const WindowScore> windows, Get get) {
  double value = 0;
  for (const WindowScore& window : windows) value = std::max(value, get(window));
  return value;
}

}  // namespace

Estimate perplexity(std::span<const WindowScore> windows) {
  const double tokens = token_count(windows);
  QUIRE_CHECK(tokens > 0);
  const double mean = sum(windows, [](const WindowScore& w) { return w.nll; }) / tokens;
  const double variance = sum(windows, [](const WindowScore& w) { return w.nll_squares; }) / tokens - mean * mean;
  Estimate estimate{.value = std::exp(mean), .error = std::nullopt};
  if (tokens > 1) estimate.error = estimate.value * std::sqrt(std::max(variance, 0.0) / (tokens - 1));
  return estimate;
}

Estimate mean_kl(std::span<const WindowScore> windows) {
  return mean_over_windows(windows, [](const WindowScore& w) { return w.kl; });
}

Estimate top_agreement(std::span<const WindowScore> windows) {
  return mean_over_windows(windows, [](const WindowScore& w) { return w.same_top; });
}

Estimate perplexity_ratio(std::span<const WindowScore> windows) {
  Estimate estimate = mean_over_windows(windows, [](const WindowScore& w) { return w.logprob_gap; });
  estimate.value = std::exp(estimate.value);
  if (estimate.error.has_value()) estimate.error = *estimate.error * estimate.value;
  return estimate;
}

double logprob_rms(std::span<const WindowScore> windows) {
  return std::sqrt(sum(windows, [](const WindowScore& w) { return w.logprob_squares; }) / token_count(windows));
}

double logprob_max(std::span<const WindowScore> windows) {
  return largest(windows, [](const WindowScore& w) { return w.logprob_max; });
}

double logit_max(std::span<const WindowScore> windows) {
  return largest(windows, [](const WindowScore& w) { return w.logit_max; });
}

std::optional<double> mean_kl_upper(std::span<const WindowScore> windows) {
  const Estimate estimate = mean_kl(windows);
  if (!estimate.error.has_value()) return std::nullopt;
  return estimate.value + 1.96 * *estimate.error;
}

std::optional<Interval> kl_ratio_interval(std::span<const WindowScore> model, std::span<const WindowScore> baseline) {
  QUIRE_CHECK(model.size() == baseline.size());
  const uint64_t n = model.size();
  std::vector<double> ratios;
  for (uint64_t resample = 0; n > 1 && resample < kResamples; ++resample) {
    double kl = 0;
    double baseline_kl = 0;
    for (uint64_t i = 0; i < n; ++i) {
      const uint64_t bits = random_bits(kBootstrapSeed, resample * n + i, RandomPurpose::kResample);
      const size_t drawn = (bits >> 32) * n >> 32;
      kl += model[drawn].kl;
      baseline_kl += baseline[drawn].kl;
    }
    if (!(baseline_kl > 0)) return std::nullopt;
    ratios.push_back(kl / baseline_kl);
  }
  if (ratios.empty()) return std::nullopt;
  std::sort(ratios.begin(), ratios.end());
  // The 2.5th and 97.5th percentiles, of 2,000 the 50th value from either end.
  const size_t tail = ratios.size() / 40;
  return Interval{.low = ratios[tail - 1], .high = ratios[ratios.size() - tail]};
}

}  // namespace quire
