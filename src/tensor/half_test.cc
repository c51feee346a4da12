#include "tensor/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace quire {
namespace {

// The definition of binary16, by arithmetic instead of bit operations.
double f16_by_definition(uint16_t half) {
  const int exponent = half >> 10 & 31;
  const int mantissa = half & 1023;
  const double magnitude = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

TEST(Half, DecodesEveryFiniteF16) {
  for (uint32_t half = 0; half < 0x10000; ++half) {
    if ((half & 0x7c00) == 0x7c00) continue;
    const float value = f16_to_f32(static_cast<uint16_t>(half));
    ASSERT_EQ(value, f16_by_definition(static_cast<uint16_t>(half))) << half;
    ASSERT_EQ(std::signbit(value), (half & 0x8000) != 0) << half;
    ASSERT_EQ(f32_to_f16(value), half);
  }
}

TEST(Half, KeepsInfinityAndNaN) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(f16_to_f32(0x7c00), infinity);
  EXPECT_EQ(f16_to_f32(0xfc00), -infinity);
  EXPECT_EQ(f32_to_f16(-infinity), 0xfc00);
  EXPECT_EQ(f32_to_bf16(infinity), 0x7f80);
  EXPECT_TRUE(std::isnan(f16_to_f32(0x7c01)));
  EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(std::nanf("")))));
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::bit_cast<float>(0x7f800001u)))));
}

// Between neighbours the nearer one wins, and at the middle the even one.
TEST(Half, RoundsToNearestEven) {
  for (uint16_t half = 0; half < 0x7bff; ++half) {
    const float low = f16_to_f32(half);
    const float high = f16_to_f32(static_cast<uint16_t>(half + 1));
    const float middle = low + (high - low) / 2;
    const uint16_t even = half % 2 == 0 ? half : static_cast<uint16_t>(half + 1);
    ASSERT_EQ(f32_to_f16(middle), even) << half;
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, 0.0f)), half) << half;
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, 1e9f)), half + 1) << half;
    ASSERT_EQ(f32_to_f16(-middle), even | 0x8000) << half;
  }
  EXPECT_EQ(f32_to_f16(65519.996f), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(f32_to_f16(1e30f), 0x7c00);

  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f808000u)), 0x3f80);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f808001u)), 0x3f81);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f818000u)), 0x3f82);
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::max()), 0x7f80);
}

}  // namespace
}  // namespace quire
