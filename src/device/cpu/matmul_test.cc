// f32 matrix products against double arithmetic, for each instruction set and number of threads.

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "device/device.h"

namespace quire {
namespace {

std::vector<std::unique_ptr<Device>> devices() {
  std::vector<std::unique_ptr<Device>> all;
  using Isa = CpuDeviceOptions::Isa;
  for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512}) {
    for (const int threads : {1, 3}) {
      CpuDeviceOptions options;
      options.isa = isa;
      options.threads = threads;
      auto device = make_cpu_device(options);
      if (device.ok()) all.push_back(std::move(*device));
    }
  }
  return all;
}

std::vector<float> random_values(int64_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(n));
  for (float& value : values) value = normal(random);
  return values;
}

struct Shape {
  int64_t m, n, k;
};

TEST(MatMul, IsTheSumOfProducts) {
  for (const auto [m, n, k] : {Shape{1, 1, 1}, Shape{12, 32, 5}, Shape{100, 130, 700}, Shape{13, 200, 513}}) {
    const auto a = random_values(m * k, 1);  // [m][k]
    const auto b = random_values(n * k, 2);  // [k][n]
    const auto before = random_values(m * n, 3);
    std::vector<float> first;
    for (const auto& device : devices()) {
      std::vector<float> c = before;
      device->matmul({.a = {a.data(), k, 1},
                      .b = {b.data(), 1, n},
                      .m = m,
                      .n = n,
                      .k = k,
                      .alpha = -1,
                      .c = c.data(),
                      .c_stride = n});
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          double want = before[static_cast<size_t>(i * n + j)];
          for (int64_t x = 0; x < k; ++x)
            want -= static_cast<double>(a[static_cast<size_t>(i * k + x)]) * b[static_cast<size_t>(x * n + j)];
          ASSERT_NEAR(c[static_cast<size_t>(i * n + j)], want, 2e-6 * static_cast<double>(k) + 1e-6)
              << device->sizes().description() << " " << i << " " << j;
        }
      }
      if (first.empty()) first = c;
      EXPECT_EQ(c, first) << device->sizes().description();
    }
  }
}

TEST(MatMul, LowerTriangleIsThatOfTheWhole) {
  const int64_t n = 150;
  const int64_t k = 600;
  const auto x = random_values(k * n, 4);  // [k][n]
  for (const auto& device : devices()) {
    std::vector<float> whole(static_cast<size_t>(n * n));
    std::vector<float> lower = whole;
    MatMulArgs args = {.a = {x.data(), 1, n}, .b = {x.data(), 1, n}, .m = n, .n = n, .k = k, .c_stride = n};
    args.c = whole.data();
    device->matmul(args);
    args.c = lower.data();
    args.lower = true;
    device->matmul(args);
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j <= i; ++j)
        ASSERT_EQ(lower[static_cast<size_t>(i * n + j)], whole[static_cast<size_t>(i * n + j)]) << i << " " << j;
    }
  }
}

}  // namespace
}  // namespace quire
