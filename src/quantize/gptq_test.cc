// GPTQ against numpy's (tools/make_gptq_goldens.py), and what must hold of any result.

#include "quantize/gptq.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "formats/safetensors_file.h"
#include "quantize/test_inputs.h"

namespace quire {
namespace {

using namespace testing_inputs;

struct Case {
  const char* name;
  GridSpec spec;
  GptqOptions options;
  bool dead = false;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

constexpr GptqOptions kOrder = {.act_order = true};
constexpr GptqOptions kStatic = {.static_groups = true};

const Case kCases[] = {
    {"g32-sym", {.bits = 4, .group = 32}, {}},
    {"g32-asym", {.bits = 4, .group = 32, .symmetric = false}, {}},
    {"g64-sym", {.bits = 4, .group = 64}, {}},
    {"g64-asym-dead", {.bits = 4, .group = 64, .symmetric = false}, {}, true},
    {"row-sym", {.bits = 4}, {}},
    {"row-asym-8bit", {.bits = 8, .symmetric = false}, {}},
    {"g32-asym-act-order", {.bits = 4, .group = 32, .symmetric = false}, kOrder},
    {"g64-sym-act-order-dead", {.bits = 4, .group = 64}, kOrder, true},
    {"g32-sym-static", {.bits = 4, .group = 32}, kStatic},
    {"g64-asym-act-order-static",
     {.bits = 4, .group = 64, .symmetric = false},
     {.act_order = true, .static_groups = true}},
};

class Goldens {
 public:
  static const Goldens& get() {
    static const Goldens goldens;
    return goldens;
  }

  template <typename T>
  std::vector<T> values(const std::string& name) const {
    for (const SafetensorsEntry& entry : file_->tensors) {
      if (entry.name != name) continue;
      std::vector<T> out(static_cast<size_t>(entry.bytes) / sizeof(T));
      std::memcpy(out.data(), entry.data, static_cast<size_t>(entry.bytes));
      return out;
    }
    ADD_FAILURE() << "no golden " << name;
    return {};
  }

 private:
  Goldens() : file_(SafetensorsFile::open(kGolden + "gptq/goldens.safetensors")) {
    EXPECT_TRUE(file_.ok()) << file_.status().message();
  }
  Result<SafetensorsFile> file_;
};

Moments golden_moments(bool dead) {
  Moments moments;
  moments.products = Goldens::get().values<float>("moments");
  moments.k = static_cast<int64_t>(std::sqrt(static_cast<double>(moments.products.size())));
  if (!dead) return moments;
  const int64_t k = moments.k;
  for (const int32_t column : Goldens::get().values<int32_t>("dead")) {
    for (int64_t i = 0; i < k; ++i)
      moments.products[static_cast<size_t>(column * k + i)] = moments.products[static_cast<size_t>(i * k + column)] = 0;
  }
  return moments;
}

Result<QuantizedRows> quantized(Device& device, const Moments& moments, const GridSpec& spec,
                                const GptqOptions& options, const std::vector<float>& weights) {
  QUIRE_ASSIGN_OR_RETURN(const GptqPlan plan, GptqPlan::create(device, moments, spec, options));
  return plan.quantize(device, spec, static_cast<int64_t>(weights.size()) / moments.k, weights);
}

class GptqGolden : public testing::TestWithParam<Case> {};

TEST_P(GptqGolden, EqualsNumpy) {
  const Case& c = GetParam();
  const std::string prefix = std::string(c.name) + ".";
  const Goldens& goldens = Goldens::get();
  const auto weights = goldens.values<float>("weights");
  const Moments moments = golden_moments(c.dead);
  const auto k = static_cast<size_t>(moments.k);
  const size_t n = weights.size() / k;
  const auto device = make_device(2);
  const auto result = quantized(*device, moments, c.spec, c.options, weights);
  ASSERT_TRUE(result.ok()) << result.status().message();
  const QuantizedMatrix& got = result->codes;

  const auto codes = goldens.values<uint8_t>(prefix + "codes");
  const auto scales = goldens.values<float>(prefix + "scales");
  const auto zeros = goldens.values<uint8_t>(prefix + "zeros");
  const auto group_of = goldens.values<int32_t>(prefix + "group_of");
  const auto sure = goldens.values<int32_t>(prefix + "sure");
  ASSERT_EQ(got.codes.size(), codes.size());
  ASSERT_EQ(got.scales.size(), scales.size());
  ASSERT_EQ(got.group_of.empty(), !c.options.act_order || c.options.static_groups);
  if (!got.group_of.empty()) {
    EXPECT_EQ(got.group_of, group_of);
  }

  const auto order = goldens.values<int32_t>(prefix + "order");
  const size_t groups = scales.size() / n;
  size_t compared = 0;
  for (size_t row = 0; row < n; ++row) {
    for (size_t place = 0; place < static_cast<size_t>(sure[row]); ++place, ++compared) {
      const size_t at = row * k + static_cast<size_t>(order[place]);
      const size_t group = row * groups + static_cast<size_t>(group_of[static_cast<size_t>(order[place])]);
      ASSERT_EQ(got.scales[group], scales[group]) << "row " << row << ", column " << order[place];
      ASSERT_EQ(got.zeros[group], zeros[group]) << "row " << row << ", column " << order[place];
      ASSERT_EQ(got.codes[at], codes[at]) << "row " << row << ", column " << order[place];
    }
  }
  EXPECT_GT(compared, n * k * 2 / 3);
  const double error = goldens.values<double>(prefix + "error")[0];
  const std::vector<float> values = decoded(c.spec, *result, static_cast<int64_t>(n), moments.k);
  EXPECT_NEAR(product_error(moments, values, weights), error, 0.001 * error);
}

INSTANTIATE_TEST_SUITE_P(Cases, GptqGolden, testing::ValuesIn(kCases));

constexpr int64_t kRows = 16;
constexpr int64_t kColumnsOfMatrix = 256;  // of every block size a multiple

TEST(Gptq, BeatsRoundingInEveryFormat) {
  const auto device = make_device(2);
  const Moments moments = moments_of(correlated_inputs(512, kColumnsOfMatrix, 5), kColumnsOfMatrix);
  const std::vector<float> weights = random_values(kRows * kColumnsOfMatrix, 6, 0.05f);
  std::vector<float> importance;
  for (int64_t i = 0; i < moments.k; ++i) importance.push_back(moments.diagonal(i));
  std::vector<GridSpec> specs = {{.bits = 4, .group = 32}, {.bits = 8, .group = 128, .symmetric = false}, {.bits = 4}};
  for (const DType type : {DType::kQ4_0, DType::kQ4_1, DType::kQ8_0, DType::kQ4_K, DType::kQ6_K})
    specs.push_back({.blocks = block_grid(type)});
  for (const GridSpec& spec : specs) {
    SCOPED_TRACE(spec.blocks == nullptr ? std::to_string(spec.bits) + "-bit g" + std::to_string(spec.group)
                                        : std::string(dtype_info(spec.blocks->dtype).name));
    const auto by_gptq = quantized(*device, moments, spec, {}, weights);
    ASSERT_TRUE(by_gptq.ok());
    const QuantizedRows rounded = round_to_nearest(*device, spec, kRows, weights, importance);
    const double error = product_error(moments, decoded(spec, *by_gptq, kRows, moments.k), weights);
    const double plain = product_error(moments, decoded(spec, rounded, kRows, moments.k), weights);
    EXPECT_LT(error, 0.75 * plain);
    EXPECT_GT(error, 0);
  }
}

TEST(Gptq, OrderByInputsIsNoWorseOnTheAverage) {
  const auto device = make_device(2);
  const GridSpec spec = {.bits = 4, .group = 32};
  double ratios = 0;
  constexpr int kSeeds = 5;
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    const Moments moments = moments_of(correlated_inputs(256, 128, 40 + 10 * seed, 4), 128);
    const std::vector<float> weights = random_values(kRows * 128, 300 + seed, 0.05f);
    double errors[2];
    for (const bool act_order : {false, true}) {
      const auto rows = quantized(*device, moments, spec, {.act_order = act_order}, weights);
      ASSERT_TRUE(rows.ok());
      errors[act_order ? 1 : 0] = product_error(moments, decoded(spec, *rows, kRows, 128), weights);
    }
    ratios += errors[1] / errors[0];
  }
  EXPECT_LT(ratios / kSeeds, 1);
}

TEST(Gptq, DoesNotDependOnThreads) {
  const Moments moments = moments_of(correlated_inputs(300, kColumnsOfMatrix, 21, 3), kColumnsOfMatrix);
  const std::vector<float> weights = random_values(17 * kColumnsOfMatrix, 22, 0.05f);
  const auto one = make_device(1);
  const auto three = make_device(3);
  for (const GptqOptions& options : {GptqOptions{}, kOrder, GptqOptions{.act_order = true, .static_groups = true}}) {
    for (const GridSpec& spec : {GridSpec{.bits = 4, .group = 64}, GridSpec{.blocks = block_grid(DType::kQ4_K)}}) {
      if (spec.blocks != nullptr && options.act_order && !options.static_groups) continue;
      const auto a = quantized(*one, moments, spec, options, weights);
      const auto b = quantized(*three, moments, spec, options, weights);
      ASSERT_TRUE(a.ok() && b.ok());
      EXPECT_TRUE(same_rows(*a, *b));
    }
  }
}

TEST(Gptq, RaisesTheDampingUntilTheMomentsCanBeFactored) {
  const auto device = make_device(1);
  Moments moments = moments_of(correlated_inputs(64, 32, 3), 32);
  // Not what inputs can give, but what sums in f32 come near: a direction of negative weight.
  for (int64_t i = 0; i < 32; ++i)
    moments.products[static_cast<size_t>(i * 32)] = moments.products[static_cast<size_t>(i)] = 0;
  moments.products[0] = -0.02f * moments.diagonal(1);
  const auto plan = GptqPlan::create(*device, moments, {.group = 32}, {.damp = 0.001});
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_GT(plan->damp(), 0.001);
  EXPECT_LT(plan->damp(), 0.2);

  moments.products[5] = std::nanf("");
  moments.products[5 * 32] = std::nanf("");
  const auto none = GptqPlan::create(*device, moments, {.group = 32}, {});
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.status().message().find("cannot be factored"), std::string::npos) << none.status().message();
}

}  // namespace
}  // namespace quire
