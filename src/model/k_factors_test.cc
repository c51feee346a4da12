// K factors: what they are chosen to be, and which are refused.

#include "model/k_factors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace quire {
namespace {

constexpr int64_t kDim = 64;
constexpr int64_t kHalf = kDim / 2;

ModelConfig config_of(int64_t layers) {
  ModelConfig config;
  config.heads = {.heads = 4, .kv_heads = 2, .head_dim = kDim};
  config.rope_dim = kDim;
  config.layers.resize(static_cast<size_t>(layers));
  return config;
}

using Vector = std::vector<double>;

// Tokens of random K, and of Q, of one head, with one rope pair of K `huge` times as large, at random angles.
struct Sample {
  Sample(double huge, size_t tokens, std::mt19937_64& random) {
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> angle(0, 6.28);
    for (size_t t = 0; t < tokens; ++t) {
      Vector key(kDim);
      Vector query(kDim);
      for (double& x : key) x = normal(random);
      for (double& x : query) x = normal(random);
      const double a = angle(random);
      key[7] = huge * std::cos(a);
      key[7 + kHalf] = huge * std::sin(a);
      k.push_back(key);
      q.push_back(query);
    }
  }
  std::vector<Vector> k, q;
};

KvObservations observe(const ModelConfig& config, const Sample& sample) {
  KvObservations seen(config);
  for (size_t d = 0; d < kDim; ++d) {
    const size_t other = d < kHalf ? d + kHalf : d - kHalf;
    for (int64_t head = 0; head < 2; ++head) {
      for (const Vector& key : sample.k) {
        float& largest = seen.k_largest_square[static_cast<size_t>(head * kDim) + d];
        largest = std::max(largest, static_cast<float>(key[d] * key[d] + key[other] * key[other]));
      }
    }
    for (int64_t head = 0; head < 4; ++head) {
      for (const Vector& query : sample.q)
        seen.q_sum_of_squares[static_cast<size_t>(head * kDim) + d] +=
            query[d] * query[d] + query[other] * query[other];
    }
  }
  return seen;
}

// Root mean square error of scores with K as int8 codes, one scale a token, after division by the factors.
double score_error(const Sample& sample, std::span<const float> factors) {
  double sum = 0;
  for (size_t t = 0; t < sample.k.size(); ++t) {
    double peak = 0;
    for (size_t d = 0; d < kDim; ++d) peak = std::max(peak, std::abs(sample.k[t][d] / double{factors[d]}));
    double error = 0;
    for (size_t d = 0; d < kDim; ++d) {
      const double code = std::nearbyint(sample.k[t][d] / double{factors[d]} * (127 / peak));
      error += sample.q[t][d] * (code * (peak / 127) * double{factors[d]} - sample.k[t][d]);
    }
    sum += error * error;
  }
  return std::sqrt(sum / static_cast<double>(sample.k.size()));
}

TEST(KFactors, EvenOutAPairThatDwarfsTheOthers) {
  const uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  const ModelConfig config = config_of(1);
  const Sample text(200, 300, random);
  const Sample other(200, 2000, random);
  const auto factors = choose_k_factors(config, observe(config, text));
  ASSERT_TRUE(factors.ok()) << factors.status().message();
  ASSERT_TRUE(check_k_factors(config, *factors, "a test").ok());
  const std::vector<float> none(kDim, 1.0f);
  const double without = score_error(other, none);
  const double with = score_error(other, *factors);
  // The pair's own error stays, of at least 200 / 127 * f / sqrt(12) a channel; that of the 62 others goes.
  EXPECT_LT(with, without / 3) << "seed " << seed;
  EXPECT_GT((*factors)[7] / (*factors)[8], 10) << "seed " << seed;
  // A head whose channels are alike has nothing to gain, and nothing to lose but by the noise of 300 tokens.
  const Sample even(1.4, 300, random);
  const auto even_factors = choose_k_factors(config, observe(config, even));
  ASSERT_TRUE(even_factors.ok());
  const Sample another(1.4, 2000, random);
  EXPECT_LT(score_error(another, *even_factors), 1.25 * score_error(another, none)) << "seed " << seed;
}

TEST(KFactors, AreThePowersThatTheHeaderStates) {
  const ModelConfig config = config_of(1);
  KvObservations seen(config);
  std::fill(seen.k_largest_square.begin(), seen.k_largest_square.end(), 1.0f);
  std::fill(seen.q_sum_of_squares.begin(), seen.q_sum_of_squares.end(), 2.0);
  for (const int64_t d : {int64_t{3}, 3 + kHalf}) {
    seen.k_largest_square[static_cast<size_t>(d)] = 256;  // K 16, in head 0
    for (int64_t head = 2; head < 4; ++head)
      seen.q_sum_of_squares[static_cast<size_t>(head * kDim + d)] = 512;  // head 1
  }
  const auto factors = choose_k_factors(config, seen);
  ASSERT_TRUE(factors.ok());
  EXPECT_NEAR((*factors)[3] / (*factors)[4], 8, 1e-5);                  // 16^0.75
  EXPECT_NEAR((*factors)[kDim + 3] / (*factors)[kDim + 4], 0.5, 1e-6);  // 16^-0.25
  double product = 0;
  for (size_t d = 0; d < kDim; ++d) product += std::log((*factors)[d]);
  EXPECT_NEAR(product, 0, 1e-4);
}

TEST(KFactors, QuietHeadsAndChannelsGetUsableOnes) {
  const ModelConfig config = config_of(2);
  KvObservations seen(config);  // nothing but zeros
  const auto none = choose_k_factors(config, seen);
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(*none, std::vector<float>(2 * 2 * kDim, 1.0f));
  std::fill(seen.k_largest_square.begin(), seen.k_largest_square.end(), 4.0f);
  std::fill(seen.q_sum_of_squares.begin(), seen.q_sum_of_squares.end(), 1.0);
  seen.k_largest_square[5] = seen.k_largest_square[5 + kHalf] = 0;
  const auto factors = choose_k_factors(config, seen);
  ASSERT_TRUE(factors.ok());
  EXPECT_NEAR((*factors)[5] / (*factors)[6], std::pow(0.1, 0.75), 1e-5) << "as if a tenth of the median";
  EXPECT_TRUE(check_k_factors(config, *factors, "a test").ok());
}

TEST(KFactors, WhatIsNotFiniteIsRefused) {
  const ModelConfig config = config_of(3);
  KvObservations seen(config);
  seen.k_largest_square[static_cast<size_t>(2 * 2 * kDim + kDim)] = std::numeric_limits<float>::infinity();
  const auto factors = choose_k_factors(config, seen);
  ASSERT_FALSE(factors.ok());
  EXPECT_NE(factors.status().message().find("layer 2, KV head 1"), std::string::npos) << factors.status().message();
}

TEST(KFactors, HostileOnesAreRefused) {
  const ModelConfig config = config_of(2);
  const std::vector<float> good(2 * 2 * kDim, 3.0f);
  EXPECT_TRUE(check_k_factors(config, good, "model.gguf").ok());
  const auto refused = [&](std::vector<float> factors, const std::string& what) {
    const Status status = check_k_factors(config, factors, "model.gguf");
    EXPECT_EQ(status.code(), StatusCode::kCorrupt);
    EXPECT_NE(status.message().find("model.gguf"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find(what), std::string::npos) << status.message();
  };
  refused(std::vector<float>(good.size() - 1, 1.0f), "255 K factors");
  refused(std::vector<float>(good.size() + 1, 1.0f), "need 256");
  for (const float bad :
       {0.0f, -3.0f, 1e-9f, 1e9f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    for (const int64_t channel : {int64_t{9}, 9 + kHalf}) {
      std::vector<float> factors = good;
      factors[static_cast<size_t>(kDim + channel)] = bad;
      refused(factors, "layer 0, KV head 1, channel");
    }
  }
  std::vector<float> factors = good;
  factors[static_cast<size_t>(3 * kDim + 9)] = 4;
  refused(factors, "layer 1, KV head 1, channel 9 differs");
}

}  // namespace
}  // namespace quire
