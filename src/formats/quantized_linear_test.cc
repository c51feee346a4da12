#include "formats/quantized_linear.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>

#include "tensor/half.h"

namespace quire {
namespace {

using Layout = QuantScheme::Layout;

// The tensors of one module, written by the tests.
struct Set {
  struct Tensor {
    SafetensorsEntry entry;
    std::vector<std::byte> data;
  };
  std::map<std::string, Tensor> tensors;

  template <typename T>
  void add(const std::string& part, const std::string& dtype, std::vector<int64_t> shape,
           const std::vector<T>& values) {
    Tensor& tensor = tensors[part];
    tensor.data.resize(values.size() * sizeof(T));
    if (!values.empty()) std::memcpy(tensor.data.data(), values.data(), tensor.data.size());
    tensor.entry = {"m." + part, dtype, std::move(shape), nullptr, static_cast<int64_t>(tensor.data.size())};
  }
  Result<std::shared_ptr<const QuantizedLinear>> open(const QuantScheme& scheme) {
    QuantizedParts parts;
    for (auto& [part, tensor] : tensors) {
      tensor.entry.data = tensor.data.data();
      parts[part] = &tensor.entry;
    }
    return QuantizedLinear::create(scheme, parts, "file: module \"m\"");
  }
  std::string error(const QuantScheme& scheme) {
    const auto opened = open(scheme);
    return opened.ok() ? "" : opened.status().message();
  }
};

// Integers of a small matrix, and what they stand for.
struct Integers {
  int64_t n, k, group;
  int bits;
  std::vector<int> codes;      // [n][k]
  std::vector<int> zeros;      // [n][groups]
  std::vector<int32_t> g_idx;  // [k]

  Integers(int64_t rows, int64_t columns, int64_t columns_a_scale, int bits_a_code, bool asymmetric)
      : n(rows), k(columns), group(columns_a_scale), bits(bits_a_code) {
    std::mt19937 random(11);
    for (int64_t i = 0; i < n * k; ++i) codes.push_back(static_cast<int>(random() % (1u << bits)));
    for (int64_t i = 0; i < n * groups(); ++i) {
      zeros.push_back(asymmetric ? static_cast<int>(random() % (1u << bits)) : 1 << (bits - 1));
    }
    for (int64_t i = 0; i < k; ++i) g_idx.push_back(static_cast<int32_t>(i / group));
  }
  int64_t groups() const { return (k + group - 1) / group; }
  int code(int64_t row, int64_t column) const { return codes[static_cast<size_t>(row * k + column)]; }
  int zero(int64_t row, int64_t g) const { return zeros[static_cast<size_t>(row * groups() + g)]; }
  float scale(int64_t row, int64_t g) const { return 0.5f + 0.25f * static_cast<float>((row + 3 * g) % 8); }
  float weight(int64_t row, int64_t column) const {
    const int64_t g = g_idx[static_cast<size_t>(column)];
    return scale(row, g) * static_cast<float>(code(row, column) - zero(row, g));
  }
};

// Puts a field into a stream of 32-bit words that lie `step` apart.
void put(std::vector<uint32_t>& words, int64_t first, int64_t step, int64_t index, int bits, int value) {
  for (int b = 0; b < bits; ++b) {
    const int64_t bit = index * bits + b;
    words[static_cast<size_t>(first + bit / 32 * step)] |= static_cast<uint32_t>(value >> b & 1) << (bit % 32);
  }
}

Set gptq_set(const Integers& m, bool less_one) {
  const int64_t zero_words = m.n * m.bits / 32;
  std::vector<uint32_t> qweight(static_cast<size_t>(m.k * m.bits / 32 * m.n));
  std::vector<uint32_t> qzeros(static_cast<size_t>(m.groups() * zero_words));
  std::vector<uint16_t> scales;
  for (int64_t row = 0; row < m.n; ++row) {
    for (int64_t column = 0; column < m.k; ++column) put(qweight, row, m.n, column, m.bits, m.code(row, column));
  }
  for (int64_t g = 0; g < m.groups(); ++g) {
    for (int64_t row = 0; row < m.n; ++row) {
      put(qzeros, g * zero_words, 1, row, m.bits, (m.zero(row, g) - (less_one ? 1 : 0)) & ((1 << m.bits) - 1));
      scales.push_back(f32_to_f16(m.scale(row, g)));
    }
  }
  Set set;
  set.add("qweight", "I32", {m.k * m.bits / 32, m.n}, qweight);
  set.add("qzeros", "I32", {m.groups(), zero_words}, qzeros);
  set.add("scales", "F16", {m.groups(), m.n}, scales);
  set.add("g_idx", "I32", {m.k}, m.g_idx);
  return set;
}

QuantScheme gptq_scheme(const Integers& m, bool symmetric, bool less_one = true) {
  return {.layout = Layout::kGptq,
          .method = "GPTQ",
          .bits = m.bits,
          .group = m.group,
          .symmetric = symmetric,
          .zeros_less_one = less_one};
}

// Both readings of the linear: whole weights, and the codes a device packs.
void expect_weights(const QuantizedLinear& linear, int64_t n, int64_t k,
                    const std::function<float(int64_t, int64_t)>& weight) {
  ASSERT_EQ(linear.rows(), n);
  ASSERT_EQ(linear.columns(), k);
  const WeightType& type = linear.type();
  const int64_t groups = code_groups(type, k);
  std::vector<uint8_t> codes(static_cast<size_t>(n * k)), zeros(static_cast<size_t>(n * groups));
  std::vector<float> scales(zeros.size()), row(static_cast<size_t>(k));
  linear.read(0, n, {codes.data(), k, scales.data(), zeros.data(), groups});
  for (int64_t r = 0; r < n; ++r) {
    linear.decode_f32(r, row.data());
    for (int64_t i = 0; i < k; ++i) {
      const int64_t column = linear.order().empty() ? i : linear.order()[static_cast<size_t>(i)];
      ASSERT_EQ(row[static_cast<size_t>(column)], weight(r, column)) << "row " << r << " column " << column;
      const auto group = static_cast<size_t>(r * groups + i / type.group);
      const uint8_t code = codes[static_cast<size_t>(r * k + i)];
      const int zero = type.zeros ? zeros[group] : type.codes == CodeKind::kInt4 ? 8 : 128;
      const float value = type.codes == CodeKind::kFp8 ? e4m3_to_f32(code) : static_cast<float>(code - zero);
      ASSERT_EQ(scales[group] * value, weight(r, column)) << "packed, row " << r << " column " << column;
    }
  }
}

TEST(QuantizedLinear, ReadsGptqOfEveryWidth) {
  for (const int bits : {2, 3, 4, 8}) {
    for (const bool asymmetric : {false, true}) {
      for (const bool less_one : {false, true}) {
        for (const int64_t group : {32, 64, 96, 160}) {
          const Integers m(32, 160, group, bits, asymmetric);  // of 64 and 96 the last group is short
          Set set = gptq_set(m, less_one);
          const auto linear = set.open(gptq_scheme(m, !asymmetric, less_one));
          ASSERT_TRUE(linear.ok()) << linear.status().message();
          EXPECT_EQ((*linear)->type().zeros, asymmetric);
          EXPECT_TRUE((*linear)->order().empty());
          expect_weights(**linear, m.n, m.k, [&](int64_t r, int64_t c) { return m.weight(r, c); });
        }
      }
    }
  }
}

TEST(QuantizedLinear, ReadsAZeroPointOfZero) {
  Integers m(32, 64, 32, 4, true);
  m.zeros.assign(m.zeros.size(), 0);
  Set set = gptq_set(m, true);  // every stored field is 15
  const auto linear = set.open(gptq_scheme(m, false));
  ASSERT_TRUE(linear.ok()) << linear.status().message();
  expect_weights(**linear, m.n, m.k, [&](int64_t r, int64_t c) { return m.weight(r, c); });
}

TEST(QuantizedLinear, OrdersColumnsByGroup) {
  Integers m(32, 128, 32, 4, true);
  for (int64_t i = 0; i < m.k; ++i) m.g_idx[static_cast<size_t>(i)] = static_cast<int32_t>(i * 7 % 4);
  Set scattered_set = gptq_set(m, true);
  const auto scattered = scattered_set.open(gptq_scheme(m, false));
  ASSERT_TRUE(scattered.ok()) << scattered.status().message();
  EXPECT_TRUE((*scattered)->type().ordered);
  EXPECT_EQ((*scattered)->order().size(), 128u);
  expect_weights(**scattered, m.n, m.k, [&](int64_t r, int64_t c) { return m.weight(r, c); });

  for (int64_t i = 0; i < m.k; ++i) m.g_idx[static_cast<size_t>(i)] = static_cast<int32_t>(3 - i / 32);
  Set whole_set = gptq_set(m, true);
  const auto whole = whole_set.open(gptq_scheme(m, false));
  ASSERT_TRUE(whole.ok());
  EXPECT_FALSE((*whole)->type().ordered);  // groups in another order need no other order of columns
  expect_weights(**whole, m.n, m.k, [&](int64_t r, int64_t c) { return m.weight(r, c); });
}

TEST(QuantizedLinear, NeedsNoOrder) {
  const Integers m(32, 64, 32, 4, false);
  Set set = gptq_set(m, true);
  set.tensors.erase("g_idx");
  const auto linear = set.open(gptq_scheme(m, true));
  ASSERT_TRUE(linear.ok());
  expect_weights(**linear, m.n, m.k, [&](int64_t r, int64_t c) { return m.weight(r, c); });
  EXPECT_EQ((*linear)->name(), "GPTQ 4-bit, groups of 32, symmetric");
}

TEST(QuantizedLinear, ReadsAwq) {
  const Integers m(16, 96, 32, 4, true);
  constexpr int kColumnOfNibble[8] = {0, 2, 4, 6, 1, 3, 5, 7};
  std::vector<uint32_t> qweight, qzeros;
  std::vector<uint16_t> scales;
  const auto pack = [&](std::vector<uint32_t>& words, const std::function<int(int64_t)>& value) {
    for (int64_t first = 0; first < m.n; first += 8) {
      uint32_t word = 0;
      for (int p = 0; p < 8; ++p) word |= static_cast<uint32_t>(value(first + kColumnOfNibble[p])) << (4 * p);
      words.push_back(word);
    }
  };
  for (int64_t c = 0; c < m.k; ++c) pack(qweight, [&](int64_t row) { return m.code(row, c); });
  for (int64_t g = 0; g < m.groups(); ++g) {
    pack(qzeros, [&](int64_t row) { return m.zero(row, g); });
    for (int64_t row = 0; row < m.n; ++row) scales.push_back(f32_to_bf16(m.scale(row, g)));
  }
  Set set;
  set.add("qweight", "I32", {m.k, m.n / 8}, qweight);
  set.add("qzeros", "I32", {m.groups(), m.n / 8}, qzeros);
  set.add("scales", "BF16", {m.groups(), m.n}, scales);
  QuantScheme scheme = {.layout = Layout::kAwq, .method = "AWQ", .bits = 4, .group = 32, .symmetric = false};
  const auto linear = set.open(scheme);
  ASSERT_TRUE(linear.ok()) << linear.status().message();
  expect_weights(**linear, m.n, m.k, [&](int64_t r, int64_t c) { return m.weight(r, c); });
  scheme.group = 64;
  EXPECT_NE(set.error(scheme).find("do not divide"), std::string::npos) << set.error(scheme);
  set.add("g_idx", "I32", {m.k}, m.g_idx);
  EXPECT_NE(set.error(scheme).find("does not belong"), std::string::npos);
}

Set packed_set(const Integers& m, bool zeros) {
  const int64_t row_words = (m.k * m.bits + 31) / 32;
  const int64_t zero_words = (m.n * m.bits + 31) / 32;
  std::vector<uint32_t> packed(static_cast<size_t>(m.n * row_words));
  std::vector<uint32_t> zero_points(static_cast<size_t>(zero_words * m.groups()));
  std::vector<float> scales;
  for (int64_t row = 0; row < m.n; ++row) {
    for (int64_t c = 0; c < m.k; ++c) put(packed, row * row_words, 1, c, m.bits, m.code(row, c));
    for (int64_t g = 0; g < m.groups(); ++g) {
      put(zero_points, g, m.groups(), row, m.bits, m.zero(row, g));
      scales.push_back(m.scale(row, g));
    }
  }
  Set set;
  set.add("weight_packed", "I32", {m.n, row_words}, packed);
  set.add("weight_scale", "F32", {m.n, m.groups()}, scales);
  set.add("weight_shape", "I64", {2}, std::vector<int64_t>{m.n, m.k});
  if (zeros) set.add("weight_zero_point", "I32", {zero_words, m.groups()}, zero_points);
  return set;
}

TEST(QuantizedLinear, ReadsPackedWeights) {
  for (const int bits : {4, 8}) {
    for (const bool asymmetric : {false, true}) {
      Integers m(20, 192, 64, bits, asymmetric);
      QuantScheme scheme = {.layout = Layout::kPacked,
                            .method = "compressed-tensors",
                            .bits = bits,
                            .group = 64,
                            .symmetric = !asymmetric};
      Set set = packed_set(m, asymmetric);
      set.add("weight_g_idx", "I32", {m.k}, std::vector<int32_t>(static_cast<size_t>(m.k), -1));  // never set
      const auto linear = set.open(scheme);
      ASSERT_TRUE(linear.ok()) << linear.status().message();
      expect_weights(**linear, m.n, m.k, [&](int64_t r, int64_t c) { return m.weight(r, c); });
    }
  }
}

TEST(QuantizedLinear, ReadsBytes) {
  const int64_t n = 40, k = 96;
  std::vector<int8_t> weights;
  for (int64_t i = 0; i < n * k; ++i) weights.push_back(static_cast<int8_t>(i * 37));
  const auto code = [&](int64_t r, int64_t c) { return weights[static_cast<size_t>(r * k + c)]; };
  Set set;
  set.add("weight", "I8", {n, k}, weights);
  set.add("weight_scale", "F32", {1}, std::vector<float>{0.3f});
  QuantScheme scheme = {.layout = Layout::kInt8, .method = "compressed-tensors", .bits = 8, .token_scale = true};
  const auto one = set.open(scheme);
  ASSERT_TRUE(one.ok()) << one.status().message();
  expect_weights(**one, n, k, [&](int64_t r, int64_t c) { return 0.3f * static_cast<float>(code(r, c)); });
  EXPECT_EQ((*one)->name(), "compressed-tensors 8-bit, one scale, symmetric, int8 activations");

  std::vector<float> scales;
  for (int64_t r = 0; r < n; ++r) scales.push_back(0.1f * static_cast<float>(r + 1));
  set.add("weight_scale", "F32", {n, 1}, scales);
  set.add("weight_zero_point", "I8", {n, 1}, std::vector<int8_t>(static_cast<size_t>(n), -3));
  scheme.symmetric = false;
  const auto shifted = set.open(scheme);
  ASSERT_TRUE(shifted.ok()) << shifted.status().message();
  expect_weights(**shifted, n, k, [&](int64_t r, int64_t c) {
    return scales[static_cast<size_t>(r)] * static_cast<float>(code(r, c) + 3);
  });
}

TEST(QuantizedLinear, ReadsFp8InBlocks) {
  const int64_t n = 40, k = 96;
  std::vector<uint8_t> weights;
  for (int64_t i = 0; i < n * k; ++i) weights.push_back(static_cast<uint8_t>(i % 127 + (i % 2) * 128));
  std::vector<float> scales = {0.1f, 0.2f, 0.3f, 0.4f};
  Set set;
  set.add("weight", "F8_E4M3", {n, k}, weights);
  set.add("weight_scale_inv", "F32", {2, 2}, scales);
  QuantScheme scheme = {.layout = Layout::kFp8, .method = "FP8", .bits = 8, .group = 64, .block_rows = 32};
  const auto linear = set.open(scheme);
  ASSERT_TRUE(linear.ok()) << linear.status().message();
  expect_weights(**linear, n, k, [&](int64_t r, int64_t c) {
    return scales[static_cast<size_t>(r / 32 * 2 + c / 64)] * e4m3_to_f32(weights[static_cast<size_t>(r * k + c)]);
  });
  EXPECT_EQ((*linear)->name(), "FP8, blocks of 32 x 64");
  set.add("weight_scale", "F32", {1}, std::vector<float>{1});
  EXPECT_NE(set.error(scheme).find("beside weight_scale_inv"), std::string::npos);
}

TEST(QuantizedLinear, RefusesSetsThatDoNotFit) {
  const Integers m(32, 64, 32, 4, false);
  const QuantScheme scheme = gptq_scheme(m, true);
  const auto expect = [&](const std::function<void(Set&)>& damage, const char* part, const char* says) {
    Set set = gptq_set(m, true);
    damage(set);
    const std::string error = set.error(scheme);
    EXPECT_NE(error.find(part), std::string::npos) << error;
    EXPECT_NE(error.find(says), std::string::npos) << error;
  };
  for (const char* part : {"qweight", "qzeros", "scales"}) {
    expect([&](Set& set) { set.tensors.erase(part); }, part, "is missing");
  }
  expect([](Set& set) { set.add("weight_scale", "F32", {1}, std::vector<float>{1}); }, "m.weight_scale",
         "does not belong");
  expect([](Set& set) { set.tensors["scales"].entry.shape = {32, 2}; }, "m.scales", "not the [2, 32]");
  expect([](Set& set) { set.tensors["scales"].entry.dtype = "I16"; }, "m.scales", "has type I16");
  expect([](Set& set) { set.tensors["qzeros"].entry.shape = {1, 8}; }, "m.qzeros", "not the [2, 4]");
  expect([](Set& set) { set.tensors["qweight"].entry.shape = {8, 32, 1}; }, "m.qweight", "3 dimensions");
  expect([](Set& set) { set.tensors["qweight"].entry.shape = {8, 0}; }, "m.qweight", "is empty");
  expect([](Set& set) { set.tensors["qweight"].entry.shape = {16, 16}; }, "m.scales", "not the");
  expect([](Set& set) { set.tensors["g_idx"].entry.shape = {32}; }, "m.g_idx", "not the [64]");
  for (const int32_t id : {2, -1, INT32_MAX, INT32_MIN}) {
    expect([&](Set& set) { std::memcpy(set.tensors["g_idx"].data.data() + 4, &id, 4); }, "m.g_idx", "names group");
  }
  expect([](Set& set) { std::memset(set.tensors["g_idx"].data.data(), 0, 256); }, "", "");  // all of group 0: legal
  const int32_t second = 1;
  expect([&](Set& set) { std::memcpy(set.tensors["g_idx"].data.data(), &second, 4); }, "m.g_idx", "every group 32");
  for (const uint16_t bits : std::initializer_list<uint16_t>{0x7c00, 0xfc00, 0x7e00}) {
    expect([&](Set& set) { std::memcpy(set.tensors["scales"].data.data() + 6, &bits, 2); }, "m.scales",
           "infinity or NaN");
  }
  for (const uint16_t bits : std::initializer_list<uint16_t>{0x0000, 0x8000}) {
    expect([&](Set& set) { std::memcpy(set.tensors["scales"].data.data() + 6, &bits, 2); }, "m.scales", "scale of 0");
  }
  // Zero points of the other version.
  Set second_version = gptq_set(m, false);
  EXPECT_NE(second_version.error(scheme).find("wrong checkpoint_format"), std::string::npos);
  QuantScheme wrong_bits = scheme;
  wrong_bits.bits = 3;
  EXPECT_NE(gptq_set(m, true).error(wrong_bits).find("wrong bits"), std::string::npos);
}

TEST(QuantizedLinear, RefusesPackedWeightsThatDisagreeWithTheirShape) {
  const Integers m(20, 64, 64, 4, false);
  const QuantScheme scheme = {.layout = Layout::kPacked, .method = "compressed-tensors", .bits = 4};
  for (const auto& [n, k] :
       std::vector<std::pair<int64_t, int64_t>>{{21, 64}, {20, 65}, {20, 56}, {-1, -1}, {20, INT64_MAX}}) {
    Set set = packed_set(m, false);
    set.add("weight_shape", "I64", {2}, std::vector<int64_t>{n, k});
    EXPECT_NE(set.error(scheme).find("\"m.weight_shape\" says"), std::string::npos) << set.error(scheme);
  }
  Set set = packed_set(m, false);
  set.add("weight_shape", "I64", {1}, std::vector<int64_t>{20});
  EXPECT_NE(set.error(scheme).find("two numbers"), std::string::npos);
  QuantScheme asymmetric = scheme;
  asymmetric.symmetric = false;
  EXPECT_NE(packed_set(m, false).error(asymmetric).find("\"weight_zero_point\""), std::string::npos);
}

}  // namespace
}  // namespace quire
