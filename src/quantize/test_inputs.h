// What the tests of quantize/ share: devices, random matrices and inputs, and errors of products in plain double loops.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "device/device.h"
#include "quantize/gptq.h"
#include "quantize/grid.h"

namespace quire::testing_inputs {

inline const std::string kGolden = std::string(QUIRE_SOURCE_DIR) + "/tests/golden/";

inline std::unique_ptr<Device> make_device(int threads, bool f32 = true) {
  CpuDeviceOptions options;
  options.threads = threads;
  options.adapt_threads = false;
  options.f32 = f32;
  auto device = make_cpu_device(options);
  QUIRE_CHECK(device.ok());
  return std::move(*device);
}

inline std::vector<float> random_values(int64_t count, uint32_t seed, float deviation = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(random);
  return values;
}

// Inputs [tokens][k] that a few hidden factors move together; every sixteenth channel is `large` times the others.
inline std::vector<float> correlated_inputs(int64_t tokens, int64_t k, uint32_t seed, float large = 1) {
  constexpr int64_t kFactors = 12;
  const std::vector<float> hidden = random_values(tokens * kFactors, seed);
  const std::vector<float> mix = random_values(kFactors * k, seed + 1, 0.5f);
  std::vector<float> x = random_values(tokens * k, seed + 2, 0.5f);
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t i = 0; i < k; ++i) {
      float& value = x[static_cast<size_t>(t * k + i)];
      for (int64_t f = 0; f < kFactors; ++f)
        value += hidden[static_cast<size_t>(t * kFactors + f)] * mix[static_cast<size_t>(f * k + i)];
      if (i % 16 == 0) value *= large;
    }
  }
  return x;
}

inline Moments moments_of(const std::vector<float>& x, int64_t k) {
  const int64_t tokens = static_cast<int64_t>(x.size()) / k;
  Moments moments;
  moments.k = k;
  for (int64_t i = 0; i < k; ++i) {
    double magnitude = 0;
    for (int64_t t = 0; t < tokens; ++t) magnitude += std::fabs(x[static_cast<size_t>(t * k + i)]);
    moments.magnitudes.push_back(static_cast<float>(magnitude / static_cast<double>(tokens)));
    for (int64_t j = 0; j < k; ++j) {
      double sum = 0;
      for (int64_t t = 0; t < tokens; ++t)
        sum += static_cast<double>(x[static_cast<size_t>(t * k + i)]) * x[static_cast<size_t>(t * k + j)];
      moments.products.push_back(static_cast<float>(sum / static_cast<double>(tokens)));
    }
  }
  return moments;
}

// The trace of d m d^T, d being the difference of `got` and `wanted` [n][k].
inline double product_error(const Moments& moments, const std::vector<float>& got, const std::vector<float>& wanted) {
  const int64_t k = moments.k;
  double total = 0;
  std::vector<double> d(static_cast<size_t>(k));
  for (size_t row = 0; row * static_cast<size_t>(k) < got.size(); ++row) {
    for (size_t i = 0; i < d.size(); ++i)
      d[i] = static_cast<double>(got[row * d.size() + i]) - wanted[row * d.size() + i];
    for (size_t i = 0; i < d.size(); ++i) {
      for (size_t j = 0; j < d.size(); ++j) total += d[i] * d[j] * moments.products[i * d.size() + j];
    }
  }
  return total;
}

inline std::vector<float> decoded(const GridSpec& spec, const QuantizedRows& rows, int64_t n, int64_t k) {
  std::vector<float> values(static_cast<size_t>(n * k));
  decode_rows(spec, rows, 0, n, k, values.data());
  return values;
}

inline bool same_rows(const QuantizedRows& a, const QuantizedRows& b) {
  return a.blocks == b.blocks && a.codes.codes == b.codes.codes && a.codes.scales == b.codes.scales &&
         a.codes.zeros == b.codes.zeros && a.codes.group_of == b.codes.group_of;
}

}  // namespace quire::testing_inputs
