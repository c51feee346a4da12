// Expected values: numpy 2.4 and scipy 1.17 (numpy.mean, scipy.stats.sem, scipy.stats.bootstrap) on the same numbers.
#include "eval/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace quire {
namespace {

constexpr double kRelative = 1e-12;

// Four windows of three tokens: minus log-likelihoods of model and reference, divergences, equal top tokens.
constexpr double kNll[4][3] = {{2.0, 1.5, 3.25}, {0.5, 1.0, 4.0}, {2.75, 0.25, 1.25}, {3.5, 2.5, 0.75}};
constexpr double kReference[4][3] = {{1.875, 1.5, 3.0}, {0.75, 1.0, 3.75}, {2.5, 0.375, 1.25}, {3.5, 2.25, 0.5}};
constexpr double kKl[4][3] = {{.02, .01, .03}, {.005, .0, .025}, {.015, .02, .01}, {.04, .01, .02}};
constexpr int64_t kSameTop[4] = {3, 2, 3, 1};

std::vector<WindowScore> example() {
  std::vector<WindowScore> windows(4);
  for (size_t w = 0; w < 4; ++w) {
    windows[w].same_top = kSameTop[w];
    for (size_t i = 0; i < 3; ++i) {
      const double gap = kNll[w][i] - kReference[w][i];
      windows[w].tokens += 1;
      windows[w].nll += kNll[w][i];
      windows[w].nll_squares += kNll[w][i] * kNll[w][i];
      windows[w].kl += kKl[w][i];
      windows[w].logprob_gap += gap;
      windows[w].logprob_squares += gap * gap;
      windows[w].logprob_max = std::max(windows[w].logprob_max, std::abs(gap));
    }
  }
  return windows;
}

void expect_estimate(const Estimate& got, double value, double error) {
  EXPECT_NEAR(got.value, value, kRelative * value);
  ASSERT_TRUE(got.error.has_value());
  EXPECT_NEAR(*got.error, error, kRelative * error);
}

TEST(Statistics, MeansAndStandardErrors) {
  const auto windows = example();
  expect_estimate(perplexity(windows), 6.941375821197036, 2.5104394161155863);
  expect_estimate(mean_kl(windows), 0.017083333333333336, 0.002916666666666667);
  expect_estimate(perplexity_ratio(windows), 1.086904049521229, 0.04134179623378398);
  expect_estimate(top_agreement(windows), 0.75, 0.15957118462605635);
  EXPECT_NEAR(logprob_rms(windows), 0.1839950180484968, 1e-12);
  EXPECT_EQ(logprob_max(windows), 0.25);
  EXPECT_NEAR(mean_kl_upper(windows).value(), 0.0228, 1e-12);
}

TEST(Statistics, OneWindowHasNoErrorOverWindows) {
  const auto windows = example();
  const auto one = std::span(windows).first(1);
  EXPECT_TRUE(perplexity(one).error.has_value());
  EXPECT_FALSE(mean_kl(one).error.has_value());
  EXPECT_FALSE(perplexity_ratio(one).error.has_value());
  EXPECT_FALSE(mean_kl_upper(one).has_value());
  EXPECT_FALSE(kl_ratio_interval(one, one).has_value());
}

TEST(Statistics, BootstrapDrawsBothModelsWindowsTogether) {
  std::vector<WindowScore> baseline(40);
  std::vector<WindowScore> model(40);
  for (size_t k = 0; k < 40; ++k) {
    const auto x = static_cast<double>(k);
    baseline[k].kl = 0.010 + 0.004 * std::sin(1.7 * x) + 0.002 * std::cos(0.9 * x);
    model[k].kl = 0.8 * baseline[k].kl + 0.002 * std::sin(2.9 * x);
  }
  const auto interval = kl_ratio_interval(model, baseline);
  ASSERT_TRUE(interval.has_value());
  // 200,000 resamples of scipy's; drawn independently the models would give 0.689 to 0.927.
  EXPECT_NEAR(interval->low, 0.75693, 0.005);
  EXPECT_NEAR(interval->high, 0.84321, 0.005);
  const auto again = kl_ratio_interval(model, baseline);
  EXPECT_EQ(again->low, interval->low);
  EXPECT_EQ(again->high, interval->high);
}

TEST(Statistics, NoRatioToAModelThatDoesNotDiverge) {
  const auto windows = example();
  EXPECT_FALSE(kl_ratio_interval(windows, std::vector<WindowScore>(4)).has_value());
}

}  // namespace
}  // namespace quire
