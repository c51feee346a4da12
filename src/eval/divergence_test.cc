// Expected values: scipy 1.17 in f64 (scipy.special.logsumexp, softmax, rel_entr) on the same f32 logits.
#include "eval/divergence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace quire {
namespace {

constexpr int64_t kTokens = 1003;  // no multiple of lanes or blocks

template <typename F>
std::vector<float> row(F f) {
  std::vector<float> logits;
  for (int64_t i = 0; i < kTokens; ++i) logits.push_back(static_cast<float>(f(static_cast<double>(i))));
  return logits;
}

const std::vector<float> kP = row([](double i) { return 4 * std::sin(0.7 * i); });
const std::vector<float> kQ = row([](double i) { return 4 * std::sin(0.7 * i) + 0.05 * std::cos(1.3 * i); });
const std::vector<float> kPeaked = row([](double i) { return 12 * std::sin(0.7 * i) + (i == 17 ? 30 : 0); });

RowDivergence divergence_of(const std::vector<float>& p, const std::vector<float>& q) {
  std::vector<float> weights(p.size());
  const RowSummary p_summary = summarize_row(p.data(), kTokens, weights.data());
  return diverge(p.data(), weights.data(), p_summary, q.data(), summarize_row(q.data(), kTokens, nullptr), kTokens);
}

TEST(Divergence, SumsOfARow) {
  std::vector<float> weights(kTokens);
  EXPECT_NEAR(summarize_row(kP.data(), kTokens, weights.data()).log_sum, 9.33804660528856, 1e-6);
  EXPECT_NEAR(summarize_row(kQ.data(), kTokens, nullptr).log_sum, 9.338673630946381, 1e-6);
  EXPECT_NEAR(summarize_row(kPeaked.data(), kTokens, nullptr).log_sum, 22.58533667627494, 1e-6);
  EXPECT_EQ(summarize_row(kP.data(), kTokens, nullptr).top, 92);
  EXPECT_EQ(summarize_row(kPeaked.data(), kTokens, nullptr).top, 17);
  for (size_t i = 0; i < weights.size(); ++i)
    ASSERT_NEAR(weights[i], std::exp(double{kP[i] - kP[92]}), 2e-7 * weights[i]);
}

TEST(Divergence, OfNearAndFarRows) {
  EXPECT_NEAR(divergence_of(kP, kQ).kl, 0.0006247956781832379, 2e-8);
  EXPECT_NEAR(divergence_of(kQ, kP).kl, 0.0006246027012072632, 2e-8);
  EXPECT_NEAR(divergence_of(kPeaked, kP).kl, 11.755867879527937, 1e-5);
  EXPECT_NEAR(divergence_of(kP, kPeaked).kl, 6.338371195651158, 1e-5);
  EXPECT_FLOAT_EQ(divergence_of(kP, kQ).logit_max, 0.05000019073486328f);
}

TEST(Divergence, OfEqualRowsIsNothing) {
  EXPECT_EQ(divergence_of(kQ, kQ).kl, 0.0);
  EXPECT_EQ(divergence_of(kQ, kQ).logit_max, 0.0f);
}

TEST(Divergence, AllRowsOfShortVocabularies) {
  for (int64_t n = 1; n < 40; ++n) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += std::exp(double{kP[static_cast<size_t>(i)]});
    EXPECT_NEAR(summarize_row(kP.data(), n, nullptr).log_sum, std::log(sum), 1e-6) << n;
  }
}

TEST(Divergence, LogitsThatAreNotFiniteShow) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const size_t at : {size_t{0}, size_t{500}, size_t{1002}}) {
      std::vector<float> logits = kP;
      logits[at] = bad;
      EXPECT_FALSE(std::isfinite(summarize_row(logits.data(), kTokens, nullptr).log_sum)) << bad << " at " << at;
    }
  }
}

}  // namespace
}  // namespace quire
