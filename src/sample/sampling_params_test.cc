#include "sample/sampling_params.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>

namespace quire {
namespace {

template <typename T>
void expect_range(T SamplingParams::*field, std::initializer_list<T> good, std::initializer_list<T> bad,
                  const std::string& name) {
  for (const T value : good) {
    SamplingParams params;
    params.*field = value;
    EXPECT_TRUE(params.validate().ok()) << name << " = " << value;
  }
  for (const T value : bad) {
    SamplingParams params;
    params.*field = value;
    EXPECT_FALSE(params.validate().ok()) << name << " = " << value;
    EXPECT_NE(params.validate().message().find(name), std::string::npos);
  }
}

TEST(SamplingParams, NamesTheFieldOutOfRange) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  expect_range<float>(&SamplingParams::temperature, {0.0f, 1.0f, 100.0f}, {-0.1f, kNan, kInfinity}, "temperature");
  expect_range<int32_t>(&SamplingParams::top_k, {0, 1, 1 << 30}, {-1}, "top_k");
  expect_range<float>(&SamplingParams::top_p, {1e-6f, 1.0f}, {0.0f, 1.0001f, kNan}, "top_p");
  expect_range<float>(&SamplingParams::min_p, {0.0f, 1.0f}, {-0.01f, 1.01f, kNan}, "min_p");
  expect_range<float>(&SamplingParams::repetition_penalty, {0.1f, 1.0f, 2.0f}, {0.0f, -1.0f, kNan, kInfinity},
                      "repetition_penalty");
}

}  // namespace
}  // namespace quire
