#include "sample/logprobs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace quire {
namespace {

TEST(Logprobs, RanksByProbabilityThenId) {
  const std::vector<float> logits = {1.0f, 3.0f, 3.0f, -2.0f};
  const RowLogprobs row = row_logprobs(logits, 4.0f, 2, 3);
  EXPECT_EQ(row.rank, 1);
  EXPECT_FLOAT_EQ(row.chosen, -1.0f);
  ASSERT_EQ(row.top.size(), 3u);
  EXPECT_EQ(row.top[0].id, 1);
  EXPECT_EQ(row.top[1].id, 2);
  EXPECT_EQ(row.top[2].id, 0);
  EXPECT_FLOAT_EQ(row.top[2].logprob, -3.0f);
}

TEST(Logprobs, TopEqualsASortedVocabulary) {
  std::mt19937 random(5);
  for (const size_t n : {1, 2, 50, 3000}) {
    std::vector<float> logits(n);
    for (float& logit : logits) logit = static_cast<float>(static_cast<int>(random() % 100)) / 8;  // with ties
    std::vector<int32_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
    for (const int32_t top_n : {0, 1, 20, 5000}) {
      const RowLogprobs row = row_logprobs(logits, 0.0f, order[n / 2], top_n);
      EXPECT_EQ(row.rank, static_cast<int32_t>(n / 2));
      ASSERT_EQ(row.top.size(), std::min(n, static_cast<size_t>(top_n)));
      for (size_t i = 0; i < row.top.size(); ++i) EXPECT_EQ(row.top[i].id, order[i]);
    }
  }
}

}  // namespace
}  // namespace quire
