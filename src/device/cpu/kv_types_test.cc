// K and V of every type through a whole device: factors of K's channels, sizes, and which methods take which type.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "device/device.h"
#include "device/memory.h"

namespace quire {
namespace {

constexpr HeadShape kShape = {.heads = 4, .kv_heads = 2, .head_dim = 64};
constexpr int64_t kHidden = 64;
constexpr int64_t kRows = 40;
constexpr KvType kEveryType[] = {KvType::kBF16, KvType::kF16, KvType::kI8, KvType::kF32};

std::unique_ptr<Device> make(KvType kv) {
  auto device = make_cpu_device({.threads = 1, .f32 = true, .kv = kv});
  return device.ok() ? std::move(*device) : nullptr;
}

// One attention layer of random f32 weights without rope: projection, pages, attention, and an output projection that is
// the identity, so that its result can be read.
class Layer {
 public:
  explicit Layer(KvType kv) : device_(make(kv)), random_(5) {
    const int64_t width = kShape.heads * kShape.head_dim;
    const int64_t kv_width = kShape.kv_heads * kShape.head_dim;
    q_ = matrix(width, kHidden);
    k_ = matrix(kv_width, kHidden);
    v_ = matrix(kv_width, kHidden);
    o_ = matrix(width, width);
    for (int64_t i = 0; i < width * width; ++i)
      o_.values[static_cast<size_t>(i)] = i / width == i % width ? 1.0f : 0.0f;
    x_.resize(kRows * kHidden);
    for (float& value : x_) value = std::normal_distribution<float>()(random_);
  }

  // Multiplies what channel `d` of every K head comes to, and divides that of Q.
  void skew(int64_t d, float factor) {
    scale_rows(k_.values, kShape.kv_heads, d, factor);
    scale_rows(q_.values, kShape.heads, d, 1 / factor);
  }

  std::vector<float> run(const float* k_factors, const RopeRows& rope = {}, const QkvStatistics* statistics = nullptr) {
    const int64_t width = kShape.heads * kShape.head_dim;
    const WeightType readers[] = {DType::kF32};
    const auto in = activations(kHidden, readers);
    const auto out = activations(width, readers);
    in->set_rows(kRows);
    out->set_rows(kRows);
    device_->norm(x_.data(), kRows, kHidden, {}, *in);
    const int64_t head_bytes = device_->sizes().kv_head_bytes(kShape.head_dim);
    const int64_t pages = (kRows + kPageTokens - 1) / kPageTokens;
    Buffer pool = std::move(*Buffer::allocate(pages * kShape.kv_heads * head_bytes, "a test"));
    const std::vector<int32_t> table = {2, 0, 1};
    const SequenceSpan span = {.rows = kRows, .page_table = table.data()};
    const KvLayer kv = {.base = pool.data(), .page_stride = kShape.kv_heads * head_bytes, .head_stride = head_bytes};
    std::vector<float> q(static_cast<size_t>(kRows * width));
    std::vector<float> scratch(static_cast<size_t>(device_->sizes().attention_scratch_floats(kShape, kRows)));
    std::vector<float> result(static_cast<size_t>(kRows * width));
    device_->qkv_project({.in = in.get(),
                          .q = pack(q_),
                          .k = pack(k_),
                          .v = pack(v_),
                          .k_factors = k_factors,
                          .statistics = statistics,
                          .q_norm = {},
                          .k_norm = {},
                          .shape = kShape,
                          .rope = rope,
                          .spans = {&span, 1},
                          .kv = kv,
                          .q_out = q.data()});
    device_->attention({.q = q.data(),
                        .shape = kShape,
                        .spans = {&span, 1},
                        .kv = kv,
                        .scale = 0.125f,
                        .scratch = scratch.data(),
                        .out = out.get()});
    device_->linear(*out, pack(o_), result.data());
    return result;
  }

  // Squared magnitudes of rope pairs (`half` of them, then single channels) of row `row`: [heads][head_dim].
  std::vector<double> squares(bool of_q, int64_t row, int64_t half) const {
    const Matrix& matrix = of_q ? q_ : k_;
    std::vector<double> values(static_cast<size_t>(matrix.n));
    for (size_t i = 0; i < values.size(); ++i) {
      for (size_t j = 0; j < kHidden; ++j)
        values[i] += double{matrix.values[i * kHidden + j]} * double{x_[static_cast<size_t>(row) * kHidden + j]};
    }
    std::vector<double> result(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      const auto channel = static_cast<int64_t>(i) % kShape.head_dim;
      const auto pair = static_cast<int64_t>(i) + (channel < half ? half : -half);
      result[i] = values[i] * values[i];
      if (channel < 2 * half) result[i] += values[static_cast<size_t>(pair)] * values[static_cast<size_t>(pair)];
    }
    return result;
  }

 private:
  struct Matrix {
    int64_t n = 0;
    int64_t k = 0;
    std::vector<float> values;
  };

  Matrix matrix(int64_t n, int64_t k) {
    Matrix m{n, k, std::vector<float>(static_cast<size_t>(n * k))};
    std::normal_distribution<float> normal(0, 1 / std::sqrt(static_cast<float>(k)));
    for (float& value : m.values) value = normal(random_);
    return m;
  }

  static void scale_rows(std::vector<float>& values, int64_t heads, int64_t d, float factor) {
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t i = 0; i < kHidden; ++i)
        values[static_cast<size_t>((h * kShape.head_dim + d) * kHidden + i)] *= factor;
    }
  }

  LinearWeight pack(const Matrix& m) {
    memory_.push_back(std::move(*Buffer::allocate(device_->sizes().packed_bytes(DType::kF32, m.n, m.k), "a test")));
    const auto row = [&](int64_t i) { return reinterpret_cast<const std::byte*>(m.values.data() + i * m.k); };
    return device_->pack({.type = DType::kF32, .n = m.n, .k = m.k, .row = row, .codes = {}}, memory_.back().data());
  }

  std::unique_ptr<LinearInput> activations(int64_t k, std::span<const WeightType> readers) {
    const ActivationShape shape = {.max_rows = kRows, .k = k, .readers = readers};
    memory_.push_back(std::move(*Buffer::allocate(device_->sizes().activation_bytes(shape), "a test")));
    return device_->make_linear_input(shape, memory_.back().data());
  }

  std::unique_ptr<Device> device_;
  std::mt19937_64 random_;
  Matrix q_, k_, v_, o_;
  std::vector<float> x_;
  std::vector<Buffer> memory_;
};

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(static_cast<double>(a[i]) - b[i]));
  return worst;
}

// Whatever the factors, scores stay; and where a channel dwarfs the others, they keep int8 exact.
TEST(KvTypes, FactorsOfKCancelOut) {
  constexpr int64_t kChannel = 9;
  constexpr float kSkew = 200;
  std::vector<float> factors(static_cast<size_t>(kShape.kv_heads * kShape.head_dim), 1.0f);
  for (int64_t h = 0; h < kShape.kv_heads; ++h) factors[static_cast<size_t>(h * kShape.head_dim + kChannel)] = kSkew;
  const std::vector<float> want = Layer(KvType::kF32).run(nullptr);
  for (const KvType kv : kEveryType) {
    Layer even(kv);
    const double plain = largest_difference(even.run(nullptr), want);
    EXPECT_LE(plain, kv == KvType::kF32 ? 0 : 4e-2);
    Layer skewed(kv);
    skewed.skew(kChannel, kSkew);
    const double with = largest_difference(skewed.run(factors.data()), want);
    const double without = largest_difference(skewed.run(nullptr), want);
    EXPECT_LE(with, 2 * plain + 1e-5) << "type " << static_cast<int>(kv);
    if (kv == KvType::kI8) {
      EXPECT_GE(without, 4 * with);
    }
  }
}

TEST(KvTypes, StatisticsAreThoseOfRopePairs) {
  constexpr int64_t kHalf = 24;  // pairs; 16 channels are not rotated
  std::vector<float> cos(kRows * kHalf);
  std::vector<float> sin(cos.size());
  for (size_t i = 0; i < cos.size(); ++i) {
    cos[i] = std::cos(0.37f * static_cast<float>(i));
    sin[i] = std::sin(0.37f * static_cast<float>(i));
  }
  std::vector<float> largest(static_cast<size_t>(kShape.kv_heads * kShape.head_dim));
  std::vector<double> sums(static_cast<size_t>(kShape.heads * kShape.head_dim));
  const QkvStatistics statistics = {.k_largest_square = largest.data(), .q_sum_of_squares = sums.data()};
  const std::vector<float> factors(largest.size(), 3.0f);
  Layer layer(KvType::kI8);
  for (const float* given : {static_cast<const float*>(nullptr), factors.data()})
    layer.run(given, {.cos = cos.data(), .sin = sin.data(), .dim = 2 * kHalf}, &statistics);
  std::vector<double> want_largest(largest.size());
  std::vector<double> want_sums(sums.size());
  for (int64_t row = 0; row < kRows; ++row) {
    const std::vector<double> k = layer.squares(false, row, kHalf);
    const std::vector<double> q = layer.squares(true, row, kHalf);
    for (size_t i = 0; i < k.size(); ++i) want_largest[i] = std::max(want_largest[i], k[i]);
    for (size_t i = 0; i < q.size(); ++i) want_sums[i] += 2 * q[i];  // of two runs, before the factors
  }
  for (size_t i = 0; i < largest.size(); ++i) EXPECT_NEAR(largest[i], want_largest[i], 1e-4 * want_largest[i]) << i;
  for (size_t i = 0; i < sums.size(); ++i) EXPECT_NEAR(sums[i], want_sums[i], 1e-4 * want_sums[i]) << i;
}

TEST(KvTypes, SizesAndNames) {
  constexpr int64_t kValues = 2 * kPageTokens * 80;  // of a head of 72, padded
  EXPECT_EQ(make(KvType::kBF16)->sizes().kv_head_bytes(72), 2 * kValues);
  EXPECT_EQ(make(KvType::kF16)->sizes().kv_head_bytes(72), 2 * kValues);
  EXPECT_EQ(make(KvType::kI8)->sizes().kv_head_bytes(72), kValues + 2 * kPageTokens * 4);
  EXPECT_EQ(make(KvType::kF32)->sizes().kv_head_bytes(72), 4 * kValues);
  EXPECT_NE(make(KvType::kF16)->sizes().description().find("f16 KV"), std::string::npos);
  EXPECT_NE(make(KvType::kI8)->sizes().description().find("int8 KV"), std::string::npos);
}

TEST(KvTypes, FullScoresTakeBf16Only) {
  for (const KvType kv : {KvType::kF16, KvType::kI8, KvType::kF32}) {
    const auto device = make_cpu_device({.kv = kv, .attention = AttentionMethod::kFullScores});
    ASSERT_FALSE(device.ok());
    EXPECT_NE(device.status().message().find("bf16 KV only"), std::string::npos) << device.status().message();
  }
}

}  // namespace
}  // namespace quire
