#include "sample/softmax_weight.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace quire {
namespace {

TEST(SoftmaxWeight, MatchesTheExponential) {
  EXPECT_EQ(softmax_weight(0.0), kUnitWeight);
  for (double x = 0.0; x > -32.0; x -= 0.00371) {
    const double expected = std::exp(x) * static_cast<double>(kUnitWeight);
    EXPECT_NEAR(static_cast<double>(softmax_weight(x)), expected, 0.5000001 + expected * 1e-13) << x;
  }
}

TEST(SoftmaxWeight, NeverRises) {
  uint64_t previous = kUnitWeight;
  for (double x = 0.0; x > -45.0; x -= 0.000913) {
    const uint64_t weight = softmax_weight(x);
    EXPECT_LE(weight, previous) << x;
    previous = weight;
  }
}

TEST(SoftmaxWeight, NothingForTheImpossible) {
  EXPECT_EQ(softmax_weight(-40.0), 0u);
  EXPECT_EQ(softmax_weight(-1e300), 0u);
  EXPECT_EQ(softmax_weight(-std::numeric_limits<double>::infinity()), 0u);
  EXPECT_EQ(softmax_weight(std::numeric_limits<double>::quiet_NaN()), 0u);
}

}  // namespace
}  // namespace quire
