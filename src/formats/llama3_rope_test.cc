// Golden factors: tests/golden/tiny-gguf (made by tools/make_gguf_twins.py), through checkpoint_writer_test.cc.
#include "formats/llama3_rope.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

RopeParams llama3(double factor, double high, int64_t original) {
  RopeParams rope;
  rope.theta = 500000.0;
  rope.scaling = RopeScaling::kLlama3;
  rope.factor = factor;
  rope.high_freq_factor = high;
  rope.original_context = original;
  return rope;
}

RopeParams unscaled(double theta) {
  RopeParams rope;
  rope.theta = theta;
  return rope;
}

// By hand: wavelengths below 8192 / 4 stay, those above 8192 are divided, and at 4096, half way along 8192 / wavelength
// between 1 and 4, a third of the frequency stays.
TEST(Llama3Rope, FactorsFollowTheWavelength) {
  RopeParams rope = llama3(8.0, 4.0, 8192);
  rope.theta =
      4096.0 * 4096.0 / (6.283185307179586 * 6.283185307179586);  // the second of two pairs has wavelength 4096
  const std::vector<float> factors = llama3_factors(rope, 4);
  ASSERT_EQ(factors.size(), 2u);
  EXPECT_EQ(factors[0], 1.0f);
  EXPECT_NEAR(factors[1], 1.0f / ((1.0f - 1.0f / 3) / 8 + 1.0f / 3), 1e-5f);
  EXPECT_EQ(llama3_factors(llama3(8.0, 4.0, 8192), 128).back(), 8.0f);
}

// Llama 3.1 and 3.2, and others.
TEST(Llama3Rope, TheNumbersAreFoundAgain) {
  for (const auto& [rope, dim] : {std::pair(llama3(8.0, 4.0, 8192), 128), std::pair(llama3(32.0, 4.0, 8192), 64),
                                  std::pair(llama3(16.0, 2.0, 4096), 128), std::pair(llama3(4.0, 8.0, 32768), 256)}) {
    const auto found = rope_from_llama3_factors(unscaled(rope.theta), llama3_factors(rope, dim));
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->scaling, RopeScaling::kLlama3);
    EXPECT_EQ(found->factor, rope.factor);
    EXPECT_EQ(found->high_freq_factor, rope.high_freq_factor);
    EXPECT_EQ(found->original_context, rope.original_context);
  }
}

TEST(Llama3Rope, OtherFactorsAreNotTakenForIt) {
  std::vector<float> factors = llama3_factors(llama3(8.0, 4.0, 8192), 128);
  factors[30] *= 1.01f;
  EXPECT_FALSE(rope_from_llama3_factors(unscaled(500000.0), factors).has_value());
  EXPECT_FALSE(rope_from_llama3_factors(unscaled(10000.0), llama3_factors(llama3(8.0, 4.0, 8192), 128)).has_value());
  const auto none = rope_from_llama3_factors(unscaled(10000.0), std::vector<float>(32, 1.0f));
  ASSERT_TRUE(none.has_value());
  EXPECT_EQ(none->scaling, RopeScaling::kNone);
}

}  // namespace
}  // namespace quire
