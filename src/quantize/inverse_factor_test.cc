#include "quantize/inverse_factor.h"

#include <gtest/gtest.h>

#include "quantize/test_inputs.h"

namespace quire {
namespace {

using namespace testing_inputs;

// x^T x / tokens of more tokens than columns, and a little on the diagonal.
std::vector<float> positive_matrix(int64_t n, uint32_t seed) {
  const std::vector<float> x = random_values(2 * n * n, seed);
  std::vector<float> h(static_cast<size_t>(n * n));
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      float sum = i == j ? 0.1f : 0;
      for (int64_t t = 0; t < 2 * n; ++t)
        sum +=
            x[static_cast<size_t>(i * 2 * n + t)] * x[static_cast<size_t>(j * 2 * n + t)] / static_cast<float>(2 * n);
      h[static_cast<size_t>(i * n + j)] = h[static_cast<size_t>(j * n + i)] = sum;
    }
  }
  return h;
}

// The largest element of u^T u h - 1, in two triangular-by-vector products a column.
double distance_from_identity(const std::vector<float>& u, const std::vector<float>& h, int64_t n) {
  double worst = 0;
  std::vector<double> uh(static_cast<size_t>(n));
  std::vector<double> column(static_cast<size_t>(n));
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n; ++i) {
      double sum = 0;
      for (int64_t k = i; k < n; ++k)
        sum += static_cast<double>(u[static_cast<size_t>(i * n + k)]) * h[static_cast<size_t>(j * n + k)];
      uh[static_cast<size_t>(i)] = sum;
    }
    std::ranges::fill(column, 0);
    for (int64_t k = 0; k < n; ++k) {
      for (int64_t i = k; i < n; ++i)
        column[static_cast<size_t>(i)] += u[static_cast<size_t>(k * n + i)] * uh[static_cast<size_t>(k)];
    }
    for (int64_t i = 0; i < n; ++i)
      worst = std::max(worst, std::fabs(column[static_cast<size_t>(i)] - (i == j ? 1 : 0)));
  }
  return worst;
}

class InverseFactor : public testing::TestWithParam<int64_t> {};

TEST_P(InverseFactor, TimesItselfTimesTheMatrixIsTheIdentity) {
  const int64_t n = GetParam();
  const std::vector<float> h = positive_matrix(n, 11);
  std::vector<float> u = h;
  const auto device = make_device(1);
  ASSERT_TRUE(upper_inverse_factor(*device, u, n));
  for (int64_t i = 0; i < n; ++i) {
    ASSERT_GT(u[static_cast<size_t>(i * n + i)], 0);
    for (int64_t j = 0; j < i; ++j) ASSERT_EQ(u[static_cast<size_t>(i * n + j)], 0) << i << " " << j;
  }
  EXPECT_LT(distance_from_identity(u, h, n), 2e-4);

  std::vector<float> threaded = h;
  const auto three = make_device(3);
  ASSERT_TRUE(upper_inverse_factor(*three, threaded, n));
  EXPECT_TRUE(u == threaded) << "depends on the number of threads";
}

INSTANTIATE_TEST_SUITE_P(Sizes, InverseFactor, testing::Values(1, 5, 64, 65, 200, 577));

TEST(InverseFactor, RefusesWhatIsNotPositiveDefinite) {
  const auto device = make_device(1);
  for (const int64_t n : {1, 65, 200}) {
    for (const int64_t at : {int64_t{0}, n / 2, n - 1}) {
      std::vector<float> h = positive_matrix(n, 13);
      float& diagonal = h[static_cast<size_t>(at * n + at)];
      for (const float wrong : {-1.0f, std::nanf("")}) {
        diagonal = wrong;
        std::vector<float> u = h;
        EXPECT_FALSE(upper_inverse_factor(*device, u, n)) << n << " with " << wrong << " at " << at;
      }
    }
  }
}

}  // namespace
}  // namespace quire
