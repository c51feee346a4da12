#include "quantize/grid.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "quantize/test_inputs.h"
#include "tensor/half.h"

namespace quire {
namespace {

using namespace testing_inputs;

constexpr int64_t kN = 3;
constexpr int64_t kK = 256;

std::string describe(const GridSpec& spec) {
  if (spec.blocks != nullptr) return std::string(dtype_info(spec.blocks->dtype).name);
  return std::to_string(spec.bits) + "-bit g" + std::to_string(spec.group) + (spec.symmetric ? " sym" : " asym");
}

std::vector<GridSpec> specs() {
  std::vector<GridSpec> all;
  for (const int bits : {4, 8}) {
    for (const int64_t group : {0, 32, 96}) {  // the last group of 96 has 64
      for (const bool symmetric : {true, false}) all.push_back({.bits = bits, .group = group, .symmetric = symmetric});
    }
  }
  for (const DType type : {DType::kQ4_0, DType::kQ4_1, DType::kQ8_0, DType::kQ4_K, DType::kQ6_K})
    all.push_back({.blocks = block_grid(type)});
  return all;
}

void fit_all(Grid& grid, const std::vector<float>& values, const float* importance) {
  for (int64_t row = 0; row < kN; ++row) {
    for (int64_t i = 0; i < kK; i += grid.unit())
      grid.fit(row, i / grid.unit(), values.data() + row * kK + i, importance == nullptr ? nullptr : importance + i,
               std::min(grid.unit(), kK - i));
  }
}

// Codes that no rounding would choose, so that a code that lands in another place shows.
TEST(Grid, DecodesWhatItsCodesStandFor) {
  const std::vector<float> values = random_values(kN * kK, 1, 0.1f);
  std::mt19937 random(2);  // NOLINT: the same codes every time
  for (const GridSpec& spec : specs()) {
    SCOPED_TRACE(describe(spec));
    Grid grid(spec, kN, kK);
    fit_all(grid, values, nullptr);
    std::vector<uint8_t> codes(values.size());
    std::vector<float> wanted(values.size());
    for (int64_t at = 0; at < kN * kK; ++at) {
      codes[static_cast<size_t>(at)] = static_cast<uint8_t>(random() % static_cast<uint32_t>(grid.levels() + 1));
      const GroupParams& params = grid.params(at / kK, at % kK / grid.group());
      if (spec.blocks == nullptr) {
        EXPECT_EQ(f16_to_f32(f32_to_f16(params.scale)), params.scale);
      }
      wanted[static_cast<size_t>(at)] = grid.value_of(params, codes[static_cast<size_t>(at)]);
    }
    const QuantizedRows rows = grid.finish(codes, {});
    const std::vector<float> got = decoded(spec, rows, kN, kK);
    for (size_t at = 0; at < got.size(); ++at)
      ASSERT_NEAR(got[at], wanted[at], 1e-6f * (1 + std::fabs(wanted[at])))
          << "row " << at / kK << " column " << at % kK;
  }
}

TEST(Grid, NearestCodesLieWithinHalfAStep) {
  const std::vector<float> values = random_values(kN * kK, 3, 0.1f);
  for (const GridSpec& spec : specs()) {
    if (spec.blocks != nullptr) continue;  // these cut the ends of the range off
    SCOPED_TRACE(describe(spec));
    Grid grid(spec, kN, kK);
    fit_all(grid, values, nullptr);
    for (int64_t at = 0; at < kN * kK; ++at) {
      const GroupParams& params = grid.params(at / kK, at % kK / grid.group());
      const float value = values[static_cast<size_t>(at)];
      const uint8_t code = nearest_code(params, inverse_of(params.scale), grid.levels(), value);
      // Beyond the last code of a symmetric grid there is another half step, and the scale is rounded.
      ASSERT_LE(std::fabs(grid.value_of(params, code) - value), 1.01f * params.scale);
      if (code > 0 && code < grid.levels()) {
        ASSERT_LE(std::fabs(grid.value_of(params, code) - value), 0.5001f * params.scale);
      }
    }
  }
}

TEST(Grid, ImportanceLowersTheWeightedError) {
  const std::vector<float> values = random_values(kN * kK, 4, 0.1f);
  std::vector<float> importance = random_values(kK, 5);
  for (float& value : importance) value *= value;
  for (const GridSpec& spec : specs()) {
    SCOPED_TRACE(describe(spec));
    double errors[2];
    for (const bool weighted : {false, true}) {
      Grid grid(spec, kN, kK);
      fit_all(grid, values, weighted ? importance.data() : nullptr);
      double sum = 0;
      for (int64_t at = 0; at < kN * kK; ++at) {
        const GroupParams& params = grid.params(at / kK, at % kK / grid.group());
        const float value = values[static_cast<size_t>(at)];
        const double d =
            grid.value_of(params, nearest_code(params, inverse_of(params.scale), grid.levels(), value)) - value;
        sum += importance[static_cast<size_t>(at % kK)] * d * d;
      }
      errors[weighted ? 1 : 0] = sum;
    }
    EXPECT_LE(errors[1], errors[0] * 1.0001);
    if (spec.blocks == nullptr && spec.bits == 4) {
      EXPECT_LT(errors[1], 0.99 * errors[0]);
    }
  }
}

TEST(Grid, SymmetricZeroPointsAreInTheMiddleAndOthersWithinTheCodes) {
  // All negative, all positive, and both.
  std::vector<float> values = random_values(kN * kK, 6, 0.1f);
  for (int64_t i = 0; i < kK; ++i) {
    values[static_cast<size_t>(i)] = -std::fabs(values[static_cast<size_t>(i)]) - 0.5f;
    values[static_cast<size_t>(kK + i)] = std::fabs(values[static_cast<size_t>(kK + i)]) + 0.5f;
  }
  for (const GridSpec& spec : specs()) {
    if (spec.blocks != nullptr) continue;
    SCOPED_TRACE(describe(spec));
    Grid grid(spec, kN, kK);
    fit_all(grid, values, nullptr);
    const QuantizedRows rows = grid.finish(std::vector<uint8_t>(values.size()), {});
    const size_t groups = rows.codes.zeros.size() / kN;
    for (size_t g = 0; g < groups; ++g) {
      if (spec.symmetric) {
        for (size_t row = 0; row < kN; ++row) EXPECT_EQ(rows.codes.zeros[row * groups + g], 1 << (spec.bits - 1));
      } else {
        EXPECT_EQ(rows.codes.zeros[g], (1 << spec.bits) - 1) << "all negative: 0 is the last code";
        EXPECT_EQ(rows.codes.zeros[groups + g], 0) << "all positive: 0 is the first code";
      }
    }
  }
}

TEST(Grid, GroupsOfZerosAndOfTinyAndLargeValuesStayFinite) {
  for (const float value : {0.0f, 1e-30f, -1e-8f, 3e4f}) {
    std::vector<float> values(static_cast<size_t>(kN * kK), value);
    values[7] = -value;
    const std::vector<float> importance(static_cast<size_t>(kK), 1.0f);
    for (const GridSpec& spec : specs()) {
      for (const float* weights : {static_cast<const float*>(nullptr), importance.data()}) {
        SCOPED_TRACE(describe(spec) + " of " + std::to_string(value));
        Grid grid(spec, kN, kK);
        fit_all(grid, values, weights);
        std::vector<uint8_t> codes(values.size());
        for (int64_t at = 0; at < kN * kK; ++at) {
          const GroupParams& params = grid.params(at / kK, at % kK / grid.group());
          codes[static_cast<size_t>(at)] =
              nearest_code(params, inverse_of(params.scale), grid.levels(), values[static_cast<size_t>(at)]);
        }
        const std::vector<float> got = decoded(spec, grid.finish(codes, {}), kN, kK);
        for (size_t at = 0; at < got.size(); ++at)
          ASSERT_NEAR(got[at], values[at], std::fabs(value) * 0.15f + 1e-6f) << at;
      }
    }
  }
}

}  // namespace
}  // namespace quire
