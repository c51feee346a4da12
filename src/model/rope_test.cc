// Frequencies of each scaling variant; tests/model/tiny_logits_test.cc holds whole models with them against transformers.

#include "model/rope.h"

#include <gtest/gtest.h>

#include <cmath>

namespace quire {
namespace {

RopeParams scaled(RopeScaling scaling, double factor, double theta = 10000.0) {
  RopeParams params;
  params.scaling = scaling;
  params.factor = factor;
  params.theta = theta;
  params.original_context = 64;
  return params;
}

TEST(Rope, PlainFrequenciesFallGeometrically) {
  const RopeTable table(RopeParams{}, 8, 512, {});
  const double want[] = {1.0, 0.1, 0.01, 0.001};
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(table.frequencies()[i], want[i], 1e-12);
  float cos[4];
  float sin[4];
  table.fill(3, cos, sin);
  EXPECT_FLOAT_EQ(cos[0], static_cast<float>(std::cos(3.0)));
  EXPECT_FLOAT_EQ(sin[1], static_cast<float>(std::sin(0.3)));
}

TEST(Rope, LinearDividesEveryFrequency) {
  const RopeTable table(scaled(RopeScaling::kLinear, 4.0), 8, 512, {});
  EXPECT_NEAR(table.frequencies()[1], 0.025, 1e-12);
}

TEST(Rope, FactorsDivideFrequencies) {
  const float factors[] = {1, 2, 4, 8};
  const RopeTable table(RopeParams{}, 8, 512, factors);
  EXPECT_NEAR(table.frequencies()[3], 0.001 / 8, 1e-12);
}

// Short wavelengths stay, long ones are divided, between them a blend.
TEST(Rope, Llama3KeepsHighAndDividesLowFrequencies) {
  const RopeTable table(scaled(RopeScaling::kLlama3, 8.0, 500000.0), 16, 1024, {});
  const RopeTable plain(scaled(RopeScaling::kNone, 1.0, 500000.0), 16, 1024, {});
  EXPECT_DOUBLE_EQ(table.frequencies()[0], plain.frequencies()[0]);
  EXPECT_DOUBLE_EQ(table.frequencies()[7], plain.frequencies()[7] / 8);
  EXPECT_LT(table.frequencies()[1], plain.frequencies()[1]);
  EXPECT_GT(table.frequencies()[1], plain.frequencies()[1] / 8);
}

TEST(Rope, YarnMagnitudeGrowsWithTheFactor) {
  RopeParams params = scaled(RopeScaling::kYarn, 4.0);
  const RopeTable derived(params, 16, 256, {});
  EXPECT_NEAR(derived.magnitude(), 0.1 * std::log(4.0) + 1, 1e-12);
  params.attention_factor = 1.5;
  const RopeTable given(params, 16, 256, {});
  EXPECT_DOUBLE_EQ(given.magnitude(), 1.5);
}

}  // namespace
}  // namespace quire
