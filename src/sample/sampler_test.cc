#include "sample/sampler.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <string>

#include "base/philox.h"

namespace quire {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Probability {
  int32_t id;
  long double p;
};

// The definition, taken literally: every step over the whole sorted vocabulary, in long double.
std::vector<Probability> exact_distribution(std::vector<float> logits, const SamplingParams& params,
                                            const std::vector<int32_t>& seen) {
  std::vector<bool> done(logits.size());
  for (const int32_t id : seen) {
    if (done[id]) continue;
    done[id] = true;
    logits[id] = logits[id] > 0 ? logits[id] / params.repetition_penalty : logits[id] * params.repetition_penalty;
  }
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
  std::vector<Probability> kept;
  for (const int32_t id : order) {
    const long double gap = (static_cast<long double>(logits[id]) - logits[order[0]]) / params.temperature;
    if (params.min_p > 0 && std::exp(gap) < static_cast<long double>(params.min_p) * (1 - 1e-6L)) break;
    kept.push_back({id, std::exp(gap)});
  }
  if (params.top_k > 0 && kept.size() > static_cast<size_t>(params.top_k)) kept.resize(params.top_k);
  const auto normalize = [&] {
    long double sum = 0;
    for (const Probability& entry : kept) sum += entry.p;
    for (Probability& entry : kept) entry.p /= sum;
  };
  normalize();
  if (params.top_p < 1.0f) {
    long double sum = 0;
    size_t count = 0;
    while (count < kept.size() && sum < static_cast<long double>(params.top_p) - 1e-10L) sum += kept[count++].p;
    kept.resize(std::max<size_t>(count, 1));
    normalize();
  }
  return kept;
}

// Whether `id` is where the cumulative distribution passes u, allowing for rounding at the border of two tokens.
bool is_inverse_cdf(const std::vector<Probability>& distribution, long double u, int32_t id) {
  long double before = 0;
  for (const Probability& entry : distribution) {
    if (entry.id == id) return before - 1e-9L <= u && u <= before + entry.p + 1e-9L;
    before += entry.p;
  }
  return false;
}

int32_t sample_once(const std::vector<float>& logits, const SamplingParams& params, uint64_t index = 0,
                    const std::vector<int32_t>& seen = {}) {
  Sampler sampler(params, seen);
  const Result<int32_t> id = sampler.sample(logits, index);
  EXPECT_TRUE(id.ok()) << id.status().message();
  return id.ok() ? *id : -1;
}

// Rows with ties, plateaus and outliers, of sizes around the selection buffers' limits.
std::vector<float> random_logits(std::mt19937_64& random) {
  const size_t size = 1 + random() % (random() % 4 == 0 ? 3000 : 90);
  const int levels = static_cast<int>(random() % 3 == 0 ? 5 : 1000000);
  const float spread = std::array{0.01f, 2.0f, 10.0f, 60.0f}[random() % 4];
  std::vector<float> logits(size);
  for (float& logit : logits) {
    logit = spread * (static_cast<float>(random() % levels) / static_cast<float>(levels) - 0.5f);
    if (random() % 50 == 0) logit = -kInfinity;
  }
  logits[random() % size] = spread;
  return logits;
}

SamplingParams random_params(std::mt19937_64& random) {
  SamplingParams params;
  params.temperature = std::array{0.1f, 0.7f, 1.0f, 3.0f}[random() % 4];
  params.top_k = std::array{0, 0, 1, 7, 200, 100000}[random() % 6];
  params.top_p = std::array{1.0f, 1.0f, 0.95f, 0.5f, 0.01f}[random() % 5];
  params.min_p = std::array{0.0f, 0.0f, 0.05f, 0.9f, 1.0f}[random() % 5];
  params.repetition_penalty = std::array{1.0f, 1.0f, 1.3f, 0.8f}[random() % 4];
  params.seed = random();
  return params;
}

// rapidcheck prints the seed of a failing case; std::mt19937_64 expands it portably.
TEST(Sampler, DrawsWhatTheDefinitionSays) {
  const bool ok = rc::check([](uint64_t seed) {
    std::mt19937_64 random(seed);
    for (int round = 0; round < 30; ++round) {
      const std::vector<float> logits = random_logits(random);
      const SamplingParams params = random_params(random);
      std::vector<int32_t> seen(random() % 20);
      for (int32_t& id : seen) id = static_cast<int32_t>(random() % logits.size());
      const uint64_t index = random() % 1000;
      const auto distribution = exact_distribution(logits, params, seen);
      const long double u = static_cast<long double>(random_bits(params.seed, index, RandomPurpose::kSample)) / 0x1p64L;
      RC_ASSERT(is_inverse_cdf(distribution, u, sample_once(logits, params, index, seen)));
    }
  });
  EXPECT_TRUE(ok);
}

// The law over many draws of one row, against the exact distribution.
TEST(Sampler, FrequenciesFollowTheDistribution) {
  const std::vector<float> logits = {1.0f, 0.0f, 2.0f, -1.0f, 2.0f, -kInfinity, 0.5f};
  SamplingParams params;
  params.temperature = 0.8f;
  params.seed = 42;
  Sampler sampler(params, {});
  std::map<int32_t, int> counts;
  constexpr int kDraws = 200000;
  for (int i = 0; i < kDraws; ++i) ++counts[*sampler.sample(logits, static_cast<uint64_t>(i))];
  double chi_squared = 0;
  for (const auto& [id, p] : exact_distribution(logits, params, {})) {
    if (p == 0) continue;
    const double expected = static_cast<double>(p) * kDraws;
    chi_squared += (counts[id] - expected) * (counts[id] - expected) / expected;
  }
  EXPECT_LT(chi_squared, 20.5);  // 5 degrees of freedom, p = 0.001
  EXPECT_EQ(counts.count(5), 0u);
}

TEST(Sampler, GreedyTakesTheLowestIdOfATie) {
  SamplingParams params;
  params.temperature = 0.0f;
  std::vector<float> logits(1001, 0.5f);
  EXPECT_EQ(sample_once(logits, params), 0);
  logits[700] = logits[701] = 3.0f;
  EXPECT_EQ(sample_once(logits, params), 700);
  logits[1000] = 3.5f;
  EXPECT_EQ(sample_once(logits, params), 1000);
}

TEST(Sampler, TemperatureBelowTheThresholdIsGreedyWhateverElseIsSet) {
  SamplingParams params;
  params.temperature = 9e-6f;
  params.seed = 123;
  EXPECT_EQ(sample_once({1.0f, 1.000001f, 1.0f}, params), 1);
}

TEST(Sampler, TopKOfOneIsGreedyWithTiesToTheLowestId) {
  SamplingParams params;
  params.temperature = 2.0f;
  params.top_k = 1;
  std::vector<float> logits(5000, 1.0f);
  for (uint64_t index = 0; index < 50; ++index) EXPECT_EQ(sample_once(logits, params, index), 0);
}

TEST(Sampler, TopKTiesGoToTheLowestIds) {
  SamplingParams params;
  params.top_k = 3;
  const std::vector<float> logits(5000, 1.0f);
  for (uint64_t index = 0; index < 200; ++index) EXPECT_LT(sample_once(logits, params, index), 3);
}

TEST(Sampler, RepetitionPenaltyCountsAToken) {
  SamplingParams params;
  params.temperature = 0.0f;
  params.repetition_penalty = 2.0f;
  EXPECT_EQ(sample_once({3.0f, 2.0f, -1.0f}, params, 0, {0, 0, 0}), 1);  // 1.5, 2.0: divided once, not thrice
  EXPECT_EQ(sample_once({-3.0f, -2.0f, -1.0f}, params, 0, {2, 1}), 2);   // -3, -4, -2: multiplied when negative
  Sampler sampler(params, {});
  const std::vector<float> logits = {3.0f, 2.0f, -1.0f};
  EXPECT_EQ(*sampler.sample(logits, 0), 0);
  sampler.accept(0);
  EXPECT_EQ(*sampler.sample(logits, 1), 1);
}

TEST(Sampler, SwitchedOffFiltersChangeNothing) {
  const bool ok = rc::check([](uint64_t seed) {
    std::mt19937_64 random(seed);
    const std::vector<float> logits = random_logits(random);
    SamplingParams off;
    off.seed = random();
    SamplingParams wide = off;
    wide.top_k = static_cast<int32_t>(logits.size()) - 1 + static_cast<int32_t>(random() % 2);
    if (wide.top_k > 0 && static_cast<size_t>(wide.top_k) < logits.size()) {
      // Dropping the least likely token cannot matter once its weight is nothing.
      if (*std::min_element(logits.begin(), logits.end()) > -kInfinity) return;
    }
    wide.min_p = 1e-30f;
    for (uint64_t index = 0; index < 20; ++index) {
      RC_ASSERT(sample_once(logits, off, index) == sample_once(logits, wide, index));
    }
  });
  EXPECT_TRUE(ok);
}

TEST(Sampler, OneSamplerUsedForManyRowsEqualsFreshOnes) {
  std::mt19937_64 random(20240229);
  for (int round = 0; round < 200; ++round) {
    SamplingParams params = random_params(random);
    params.repetition_penalty = 1.0f;
    Sampler reused(params, {});
    for (uint64_t index = 0; index < 4; ++index) {
      const std::vector<float> logits = random_logits(random);
      EXPECT_EQ(*reused.sample(logits, index), sample_once(logits, params, index)) << "round " << round;
    }
  }
}

TEST(Sampler, NeverChoosesNan) {
  SamplingParams params;
  params.temperature = 5.0f;
  for (const int32_t top_k : {0, 2}) {
    params.top_k = top_k;
    for (uint64_t index = 0; index < 100; ++index) {
      const int32_t id = sample_once({kNan, 1.0f, kNan, 0.9f, -kInfinity}, params, index);
      EXPECT_TRUE(id == 1 || id == 3) << id;
    }
  }
  params.temperature = 0.0f;
  EXPECT_EQ(sample_once({kNan, 1.0f, kNan}, params), 1);
}

TEST(Sampler, NonsenseLogitsAreAnError) {
  for (const float temperature : {0.0f, 1.0f}) {
    SamplingParams params;
    params.temperature = temperature;
    Sampler sampler(params, {});
    EXPECT_FALSE(sampler.sample(std::vector<float>{kNan, kNan}, 0).ok());
    EXPECT_FALSE(sampler.sample(std::vector<float>{-kInfinity}, 0).ok());
    EXPECT_FALSE(sampler.sample(std::vector<float>{1.0f, kInfinity}, 0).ok());
  }
}

TEST(Sampler, AdjustsLogitsInVllmsOrder) {
  const std::vector<float> logits = {2.0f, 1.5f, 1.0f, 0.5f};
  SamplingParams params;
  params.temperature = 0;
  params.logit_bias = {{3, 2.0f}};
  EXPECT_EQ(sample_once(logits, params), 3);

  params.logit_bias.clear();
  params.frequency_penalty = 0.3f;
  params.presence_penalty = 0.1f;
  Sampler sampler(params, std::vector<int32_t>{0, 0, 0});
  EXPECT_EQ(*sampler.sample(logits, 0), 0);  // the prompt does not count
  sampler.accept(0);
  EXPECT_EQ(*sampler.sample(logits, 1), 0);  // 2.0 - 0.4
  sampler.accept(0);
  EXPECT_EQ(*sampler.sample(logits, 2), 1);  // 2.0 - 0.7
}

TEST(Sampler, KeepsFromEndingBeforeMinTokens) {
  const std::vector<float> logits = {2.0f, 1.5f, 1.0f};
  SamplingParams params;
  params.temperature = 0;
  params.min_tokens = 2;
  params.min_tokens_mask = {0};
  EXPECT_EQ(sample_once(logits, params, 1), 1);
  EXPECT_EQ(sample_once(logits, params, 2), 0);
}

TEST(Sampler, NeverFinishesABadWord) {
  const std::vector<float> logits = {2.0f, 1.5f, 1.0f};
  SamplingParams params;
  params.temperature = 0;
  params.bad_words = {{2, 0}, {1}};
  Sampler sampler(params, std::vector<int32_t>{2});
  EXPECT_EQ(*sampler.sample(logits, 0), 0);  // the prompt's 2 does not begin a word of the output
  sampler.accept(2);
  EXPECT_EQ(*sampler.sample(logits, 1), 2);
}

}  // namespace
}  // namespace quire
