// Per-row operations of each instruction set against double arithmetic.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "device/cpu/kernels.h"
#include "tensor/half.h"

namespace quire::cpu {
namespace {

std::vector<const Kernels*> tables() {
  std::vector<const Kernels*> all = {&scalar_kernels()};
  for (const Kernels* fast : {avx2_kernels(), avxvnni_kernels(), avx512_kernels()}) {
    if (fast != nullptr) all.push_back(fast);
  }
  return all;
}

std::vector<float> random_values(size_t n, float size, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> values(n);
  for (float& value : values) value = size * std::normal_distribution<float>()(random);
  return values;
}

TEST(RowOps, RmsNorm) {
  for (const Kernels* kernels : tables()) {
    for (const size_t n : {1, 15, 16, 64, 100, 896}) {
      const auto x = random_values(n, 3, 1);
      const auto weight = random_values(n, 1, 2);
      std::vector<float> out(n);
      kernels->rms_norm(x.data(), weight.data(), static_cast<int64_t>(n), 1e-5f, out.data());
      double squares = 0;
      for (const float value : x) squares += static_cast<double>(value) * value;
      for (size_t i = 0; i < n; ++i) {
        const double want = x[i] / std::sqrt(squares / static_cast<double>(n) + 1e-5) * weight[i];
        EXPECT_NEAR(out[i], want, 1e-5 * (1 + std::abs(want))) << kernels->name << " n " << n;
      }
    }
  }
}

TEST(RowOps, GatedActivations) {
  for (const Kernels* kernels : tables()) {
    auto gate = random_values(1000, 8, 3);
    gate[0] = 200;
    gate[1] = -200;
    gate[2] = 0;
    const auto up = random_values(1000, 1, 4);
    std::vector<float> silu(1000);
    std::vector<float> gelu(1000);
    kernels->silu_mul(gate.data(), up.data(), 1000, silu.data());
    kernels->gelu_tanh_mul(gate.data(), up.data(), 1000, gelu.data());
    for (size_t i = 0; i < gate.size(); ++i) {
      const double g = gate[i];
      EXPECT_NEAR(silu[i], g / (1 + std::exp(-g)) * up[i], 1e-5 * (1 + std::abs(g))) << kernels->name;
      EXPECT_NEAR(gelu[i], 0.5 * g * (1 + std::tanh(std::sqrt(2 / M_PI) * (g + 0.044715 * g * g * g))) * up[i],
                  1e-5 * (1 + std::abs(g)))
          << kernels->name;
    }
  }
}

TEST(RowOps, LogSumExpAndSoftcap) {
  for (const Kernels* kernels : tables()) {
    for (const size_t n : {1, 17, 5000}) {
      auto x = random_values(n, 10, 5);
      double sum = 0;
      for (const float value : x) sum += std::exp(static_cast<double>(value) - x[0]);
      EXPECT_NEAR(kernels->log_sum_exp(x.data(), static_cast<int64_t>(n)), x[0] + std::log(sum),
                  1e-5 * (1 + std::abs(x[0])));
      const auto before = x;
      kernels->softcap(x.data(), static_cast<int64_t>(n), 30.0f);
      for (size_t i = 0; i < n; ++i) EXPECT_NEAR(x[i], 30 * std::tanh(before[i] / 30), 1e-5 * 30);
    }
  }
}

// What pack_i8 writes for one row of kColumns values.
template <size_t kColumns>
struct Packed {
  int8_t q[kColumns];
  float scales[kColumns / 32];
  int32_t neg16[kColumns / 16];
  int32_t neg32[kColumns / 32];
  float scaled[kColumns / 32];

  Packed(const Kernels& kernels, const std::vector<float>& x, bool power_of_two) {
    kernels.pack_i8(x.data(), 0, kColumns,
                    {.rows = 1,
                     .slot = 0,
                     .power_of_two = power_of_two,
                     .q = q,
                     .scales = scales,
                     .neg_sums16 = neg16,
                     .neg_sums32 = neg32,
                     .scaled_sums32 = scaled,
                     .bf16 = nullptr,
                     .f32 = nullptr});
  }
};

// One scale per 32 values, rounding to nearest, and the sums that weight offsets and mins are corrected with.
TEST(RowOps, PackInt8) {
  for (const Kernels* kernels : tables()) {
    for (const bool power_of_two : {false, true}) {
      auto x = random_values(64, 5, 6);
      for (size_t i = 32; i < 64; ++i) x[i] = 0;
      const Packed<64> to(*kernels, x, power_of_two);
      int32_t sum = 0;
      for (size_t i = 0; i < 32; ++i) {
        EXPECT_LE(std::abs(x[i] - static_cast<float>(to.q[i]) * to.scales[0]), to.scales[0] * 0.5001f);
        sum += to.q[i];
      }
      EXPECT_EQ(to.neg32[0], -sum);
      EXPECT_EQ(to.neg16[0] + to.neg16[1], -sum);
      EXPECT_FLOAT_EQ(to.scaled[0], to.scales[0] * static_cast<float>(sum));
      for (size_t i = 32; i < 64; ++i) EXPECT_EQ(to.q[i], 0);
    }
  }
}

// The smallest power of two that leaves no value beyond 127 after rounding, whatever the peak.
TEST(RowOps, PowerOfTwoScales) {
  for (const Kernels* kernels : tables()) {
    for (const float peak : {1.0f, -127.0f, 127.4f, 127.5f, 128.0f, 254.9f, 255.1f, 1e-3f, -3e8f}) {
      std::vector<float> x(32, 0.0f);
      x[7] = peak;
      const Packed<32> to(*kernels, x, true);
      int exponent = 0;
      EXPECT_EQ(std::frexp(to.scales[0], &exponent), 0.5f) << peak;
      const int largest = std::abs(int{to.q[7]});
      EXPECT_LE(largest, 127) << peak;
      EXPECT_GE(largest, 64) << peak;
    }
    for (const float peak : {0.0f, 1e-38f, 3e38f}) {  // no scale of use: the nearest that products can bear
      std::vector<float> x(32, peak);
      const Packed<32> to(*kernels, x, true);
      EXPECT_EQ(to.scales[0], peak > 1 ? 0x1p60f : 0x1p-60f);
    }
  }
}

// The layouts of kernels.h, by their indices.
TEST(RowOps, StoresInt8WithAScalePerToken) {
  constexpr int32_t kDim = 24;
  constexpr int32_t kPadded = 32;
  constexpr int32_t kSlot = 5;
  constexpr size_t kCodes = size_t{kPadded} * kPageTokens;
  for (const Kernels* kernels : tables()) {
    auto k = random_values(kDim, 3, 10);
    const std::vector<float> v(kDim, 0.0f);
    k[7] = -20;  // the largest
    std::vector<uint8_t> page(2 * (kCodes + 64), 0xff);
    kernels->kv_i8.store(k.data(), v.data(), kDim, kPadded, kSlot, page.data());
    float scale;
    std::memcpy(&scale, &page[kCodes + 4 * kSlot], 4);
    EXPECT_FLOAT_EQ(scale, 20.0f / 127);
    const auto k_code = [&](int32_t d) {
      return static_cast<int8_t>(page[static_cast<size_t>((d / 2 * kPageTokens + kSlot) * 2 + d % 2)]);
    };
    for (int32_t d = 0; d < kPadded; ++d) {
      const double want = d < kDim ? std::nearbyint(k[static_cast<size_t>(d)] * (127 / 20.0)) : 0;
      EXPECT_EQ(k_code(d), want) << kernels->name << " d " << d;
      EXPECT_EQ(page[kCodes + 64 + static_cast<size_t>((kSlot / 2 * kPadded + d) * 2 + kSlot % 2)], 0);
    }
    EXPECT_EQ(k_code(7), -127);
    std::memcpy(&scale, &page[2 * kCodes + 64 + 4 * kSlot], 4);
    EXPECT_EQ(scale, 0.0f);
  }
}

TEST(RowOps, F16KvSaturates) {
  for (const Kernels* kernels : tables()) {
    std::vector<float> k = {65503.9f, 65519.0f, 1e6f, -1e6f, -std::numeric_limits<float>::infinity(),
                            NAN,      6e-8f,    1e-9f};
    const auto more = random_values(500, 1e-3f, 11);
    k.insert(k.end(), more.begin(), more.end());
    k.resize(512);
    std::vector<uint16_t> page(2 * 512 * kPageTokens);
    kernels->kv_f16.store(k.data(), k.data(), 512, 512, 0, reinterpret_cast<uint8_t*>(page.data()));
    const auto stored = [&](size_t d) { return f16_to_f32(page[d * kPageTokens]); };
    EXPECT_EQ(stored(0), 65504.0f);
    EXPECT_EQ(stored(1), 65504.0f);
    EXPECT_EQ(stored(2), 65504.0f);
    EXPECT_EQ(stored(3), -65504.0f);
    EXPECT_EQ(stored(4), -65504.0f);
    EXPECT_TRUE(std::isnan(stored(5)));
    for (size_t d = 6; d < k.size(); ++d) {
      EXPECT_EQ(page[d * kPageTokens], f32_to_f16(k[d])) << kernels->name << " " << k[d];
      EXPECT_EQ(page[size_t{512} * kPageTokens + d], f32_to_f16(k[d]));
    }
  }
}

// Element-wise code is one source compiled per instruction set, without contraction: the bits agree.
TEST(RowOps, EveryIsaGivesTheSameBits) {
  if (tables().size() == 1) GTEST_SKIP() << "this CPU lacks AVX2";
  const auto x = random_values(1000, 4, 7);
  const auto y = random_values(1000, 1, 8);
  std::vector<float> a(1000);
  std::vector<float> b(1000);
  for (const Kernels* kernels : tables()) {
    for (const auto op : {&Kernels::silu_mul, &Kernels::gelu_tanh_mul}) {
      (scalar_kernels().*op)(x.data(), y.data(), 1000, a.data());
      (kernels->*op)(x.data(), y.data(), 1000, b.data());
      EXPECT_EQ(std::memcmp(a.data(), b.data(), 4000), 0) << kernels->name;
    }
    scalar_kernels().rms_norm(x.data(), y.data(), 1000, 1e-6f, a.data());
    kernels->rms_norm(x.data(), y.data(), 1000, 1e-6f, b.data());
    EXPECT_EQ(std::memcmp(a.data(), b.data(), 4000), 0) << kernels->name;
  }
}

TEST(RowOps, EveryIsaStoresTheSameKv) {
  constexpr int32_t kDim = 72;
  constexpr int32_t kPadded = 80;
  for (const auto kv : {&Kernels::kv_bf16, &Kernels::kv_f16, &Kernels::kv_i8, &Kernels::kv_f32}) {
    const auto stored = [&](const Kernels& kernels) {
      std::vector<uint8_t> page(2 * 4 * kPadded * kPageTokens);
      for (int32_t slot = 0; slot < kPageTokens; ++slot) {
        const auto k = random_values(kDim, 5, 100 + static_cast<uint64_t>(slot));
        const auto v = random_values(kDim, 5, 200 + static_cast<uint64_t>(slot));
        (kernels.*kv).store(k.data(), v.data(), kDim, kPadded, slot, page.data());
      }
      return page;
    };
    for (const Kernels* kernels : tables()) EXPECT_EQ(stored(*kernels), stored(scalar_kernels())) << kernels->name;
  }
}

TEST(RowOps, EveryIsaPacksTheSameInt8) {
  const auto x = random_values(960, 4, 9);
  for (const bool power_of_two : {false, true}) {
    const Packed<960> want(scalar_kernels(), x, power_of_two);
    for (const Kernels* kernels : tables()) {
      const Packed<960> got(*kernels, x, power_of_two);
      EXPECT_EQ(std::memcmp(&got, &want, sizeof got), 0) << kernels->name << " " << power_of_two;
    }
  }
}

// One scale a row, by the formula of compressed-tensors but for -128 (pack_i8_token.inc), on every instruction set.
TEST(RowOps, Int8RowsHaveOneScale) {
  auto x = random_values(960, 4, 10);
  for (const float extreme : {0.0f, 20.0f, -20.0f}) {
    if (extreme != 0) x[500] = extreme;
    float peak = 0;
    for (const float value : x) peak = std::max(peak, std::abs(value));
    for (const Kernels* kernels : tables()) {
      std::vector<int8_t> q(960);
      std::vector<float> scales(30), scaled(30);
      std::vector<int32_t> neg16(60), neg32(30);
      kernels->pack_i8_token(x.data(), 960,
                             {.rows = 1,
                              .slot = 0,
                              .power_of_two = false,
                              .q = q.data(),
                              .scales = scales.data(),
                              .neg_sums16 = neg16.data(),
                              .neg_sums32 = neg32.data(),
                              .scaled_sums32 = scaled.data(),
                              .bf16 = nullptr,
                              .f32 = nullptr});
      for (size_t i = 0; i < x.size(); ++i) {
        const double exact = static_cast<double>(x[i]) * 127.5 / static_cast<double>(peak);
        EXPECT_LE(std::abs(std::clamp(exact, -127.0, 127.0) - q[i]), 0.5001) << kernels->name << " " << i;
        EXPECT_EQ(scales[i / 32], peak / 127.5f);
      }
      for (size_t g = 0; g < 30; ++g) {
        int32_t sum = 0;
        for (size_t i = 0; i < 32; ++i) sum += q[32 * g + i];
        EXPECT_EQ(neg32[g], -sum);
        EXPECT_EQ(neg16[2 * g] + neg16[2 * g + 1], -sum);
        EXPECT_EQ(scaled[g], scales[g] * static_cast<float>(sum));
      }
    }
  }
}

}  // namespace
}  // namespace quire::cpu
