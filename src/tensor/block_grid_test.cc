// Scales and codes chosen apart: what decoding makes of them is what the grid says, and the choice is a good one.

#include "tensor/block_grid.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace quire {
namespace {

class EveryGrid : public testing::TestWithParam<DType> {
 protected:
  const BlockGrid& grid() const { return *block_grid(GetParam()); }
  size_t elements() const { return static_cast<size_t>(dtype_info(GetParam()).block_elements); }
  size_t bytes() const { return static_cast<size_t>(dtype_info(GetParam()).block_bytes); }

  std::vector<float> decoded(const std::vector<std::byte>& block) const {
    std::vector<float> out(elements());
    dtype_info(GetParam()).decode(block.data(), 1, out.data());
    return out;
  }
  std::vector<GroupParams> params(const std::vector<std::byte>& block) const {
    std::vector<GroupParams> out(elements() / static_cast<size_t>(grid().group));
    grid().params(block.data(), out.data());
    return out;
  }
  // Nearest codes.
  std::vector<std::byte> rounded(const std::vector<float>& values, const std::vector<float>& importance) const {
    std::vector<std::byte> block(bytes());
    grid().fit(values.data(), importance.data(), block.data());
    const auto groups = params(block);
    std::vector<uint8_t> codes(elements());
    for (size_t i = 0; i < codes.size(); ++i) {
      const GroupParams& group = groups[i / static_cast<size_t>(grid().group)];
      codes[i] = nearest_code(group, inverse_of(group.scale), grid().levels, values[i]);
    }
    grid().put(codes.data(), block.data());
    return block;
  }
};

std::vector<float> normal_values(size_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  return values;
}

double error_of(const std::vector<float>& a, const std::vector<float>& b, const std::vector<float>& importance) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(importance[i]) * (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

TEST_P(EveryGrid, DecodingGivesWhatTheCodesStandFor) {
  std::mt19937_64 random(7);
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const auto values = normal_values(elements(), seed);
    std::vector<std::byte> block(bytes());
    grid().fit(values.data(), std::vector<float>(elements(), 1.0f).data(), block.data());
    std::vector<uint8_t> codes(elements());
    for (uint8_t& code : codes) code = static_cast<uint8_t>(random() % static_cast<uint64_t>(grid().levels + 1));
    grid().put(codes.data(), block.data());
    const auto groups = params(block);
    const auto out = decoded(block);
    for (size_t i = 0; i < codes.size(); ++i) {
      const GroupParams& group = groups[i / static_cast<size_t>(grid().group)];
      ASSERT_NEAR(out[i], group.scale * static_cast<float>(codes[i]) + group.offset, 1e-5) << i;
    }
  }
}

TEST_P(EveryGrid, RoundsNoWorseThanTheFormatsOwnQuantizer) {
  const DTypeInfo& info = dtype_info(GetParam());
  if (info.encode == nullptr) GTEST_SKIP() << "quire has no other encoder of " << info.name;
  const std::vector<float> even(elements(), 1.0f);
  double ours = 0;
  double reference = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const auto values = normal_values(elements(), seed);
    ours += error_of(values, decoded(rounded(values, even)), even);
    std::vector<std::byte> block(bytes());
    info.encode(values.data(), 1, block.data());
    reference += error_of(values, decoded(block), even);
  }
  EXPECT_LE(ours, reference * 1.001);
}

TEST_P(EveryGrid, ImportantWeightsGetSmallerErrors) {
  if (GetParam() == DType::kQ8_0) GTEST_SKIP() << "its scale is that of the largest weight";
  const std::vector<float> even(elements(), 1.0f);
  double with = 0;
  double without = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const auto values = normal_values(elements(), seed);
    std::vector<float> importance = even;
    for (size_t i = 0; i < importance.size(); i += 8) importance[i] = 50;
    with += error_of(values, decoded(rounded(values, importance)), importance);
    without += error_of(values, decoded(rounded(values, even)), importance);
  }
  EXPECT_LT(with, 0.9 * without);
}

TEST_P(EveryGrid, ZerosStayZeros) {
  const std::vector<float> zeros(elements(), 0.0f);
  for (const float value : decoded(rounded(zeros, std::vector<float>(elements(), 1.0f)))) EXPECT_EQ(value, 0.0f);
}

INSTANTIATE_TEST_SUITE_P(BlockGrid, EveryGrid,
                         testing::Values(DType::kQ4_0, DType::kQ4_1, DType::kQ8_0, DType::kQ4_K, DType::kQ6_K),
                         [](const auto& test) { return std::string(dtype_info(test.param).name); });

}  // namespace
}  // namespace quire
