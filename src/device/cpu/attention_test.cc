// Attention kernels against softmax(q K) V in double, over shuffled pages whose free slots hold NaN: once with K and V as
// they were given, once with what their type rounds them to, where only queries and weights are left to round.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "device/cpu/kernels.h"
#include "device/memory.h"
#include "tensor/half.h"

namespace quire::cpu {
namespace {

struct Shape {
  int32_t head_dim;
  int32_t rows;
  int64_t tokens;
  int64_t window;
  float softcap;
  bool sinks;
};

struct KvCase {
  const char* name;
  KvKernels Kernels::*kernels;
  int64_t value_bytes;
  int64_t scale_bytes;  // of K and of V, each
  void (*round)(float* head, int32_t n);
  double rounded_error;  // largest, with K and V rounded, all of them of standard deviation 1
  double error;
};

void round_bf16(float* head, int32_t n) {
  for (int32_t d = 0; d < n; ++d) head[d] = bf16_to_f32(f32_to_bf16(head[d]));
}

void round_f16(float* head, int32_t n) {
  for (int32_t d = 0; d < n; ++d) head[d] = f16_to_f32(f32_to_f16(head[d]));
}

void round_i8(float* head, int32_t n) {
  float peak = 0;
  for (int32_t d = 0; d < n; ++d) peak = std::max(peak, std::abs(head[d]));
  for (int32_t d = 0; d < n; ++d) head[d] = std::nearbyint(head[d] * (127 / peak)) * (peak / 127);
}

constexpr KvCase kBf16 = {"bf16", &Kernels::kv_bf16, 2, 0, round_bf16, 2e-2, 3e-2};
constexpr KvCase kKvCases[] = {kBf16,
                               {"f16", &Kernels::kv_f16, 2, 0, round_f16, 2e-5, 3e-3},
                               {"int8", &Kernels::kv_i8, 1, 64, round_i8, 5e-4, 4e-2},
                               {"f32", &Kernels::kv_f32, 4, 0, nullptr, 2e-5, 2e-5}};

class PagedKeys {
 public:
  PagedKeys(const Kernels& kernels, const KvCase& kv, const Shape& shape, std::mt19937_64& random)
      : padded_((shape.head_dim + 15) / 16 * 16),
        page_bytes_(2 * (kPageTokens * padded_ * kv.value_bytes + kv.scale_bytes)) {
    const int64_t pages = (shape.tokens + kPageTokens - 1) / kPageTokens;
    memory_ = std::move(*Buffer::allocate(pages * page_bytes_, "a test"));
    std::memset(memory_.data(), 0xff, static_cast<size_t>(memory_.size()));
    table_.resize(static_cast<size_t>(pages));
    std::iota(table_.begin(), table_.end(), 0);
    std::shuffle(table_.begin(), table_.end(), random);
    std::normal_distribution<float> normal;
    for (int64_t token = 0; token < shape.tokens; ++token) {
      for (int32_t d = 0; d < shape.head_dim; ++d) {
        k_.push_back(normal(random));
        v_.push_back(normal(random));
      }
      auto* page =
          reinterpret_cast<uint8_t*>(memory_.data()) + table_[static_cast<size_t>(token / kPageTokens)] * page_bytes_;
      (kernels.*kv.kernels)
          .store(&k_[static_cast<size_t>(token * shape.head_dim)], &v_[static_cast<size_t>(token * shape.head_dim)],
                 shape.head_dim, padded_, static_cast<int32_t>(token % kPageTokens), page);
    }
  }

  // Makes k_ and v_ what the pages hold.
  void round(const KvCase& kv, int32_t head_dim) {
    for (size_t i = 0; i < k_.size() && kv.round != nullptr; i += static_cast<size_t>(head_dim)) {
      kv.round(&k_[i], head_dim);
      kv.round(&v_[i], head_dim);
    }
  }

  int32_t padded_;
  int64_t page_bytes_;
  Buffer memory_;
  std::vector<int32_t> table_;
  std::vector<float> k_, v_;
};

std::vector<double> plain_attention(const Shape& shape, const PagedKeys& keys, const float* q, int64_t position,
                                    float scale, const float* sink) {
  const int64_t first = shape.window > 0 ? std::max<int64_t>(0, position - shape.window + 1) : 0;
  std::vector<double> scores;
  double peak = sink != nullptr ? *sink : -1e30;
  for (int64_t token = first; token <= position; ++token) {
    double score = 0;
    for (int32_t d = 0; d < shape.head_dim; ++d)
      score += static_cast<double>(q[d]) * keys.k_[static_cast<size_t>(token * shape.head_dim + d)];
    score *= scale;
    if (shape.softcap > 0) score = shape.softcap * std::tanh(score / shape.softcap);
    scores.push_back(score);
    peak = std::max(peak, score);
  }
  double sum = sink != nullptr ? std::exp(*sink - peak) : 0;
  std::vector<double> out(static_cast<size_t>(shape.head_dim));
  for (size_t i = 0; i < scores.size(); ++i) {
    const double weight = std::exp(scores[i] - peak);
    sum += weight;
    for (int32_t d = 0; d < shape.head_dim; ++d) {
      out[static_cast<size_t>(d)] +=
          weight *
          keys.v_[(static_cast<size_t>(first) + i) * static_cast<size_t>(shape.head_dim) + static_cast<size_t>(d)];
    }
  }
  for (double& value : out) value /= sum;
  return out;
}

void check(const Kernels& kernels, const KvCase& kv, const Shape& shape, uint64_t seed, bool full) {
  std::mt19937_64 random(seed);
  PagedKeys keys(kernels, kv, shape, random);
  AttentionRows in{};
  in.rows = shape.rows;
  std::vector<float> q(static_cast<size_t>(shape.rows * shape.head_dim));
  for (float& value : q) value = std::normal_distribution<float>()(random);
  for (int32_t r = 0; r < shape.rows; ++r) {
    in.q[r] = q.data() + r * shape.head_dim;
    in.position[r] = shape.tokens - shape.rows + r;
  }
  in.head_dim = shape.head_dim;
  in.head_dim_padded = keys.padded_;
  in.window = shape.window;
  in.scale = 1.0f / std::sqrt(static_cast<float>(shape.head_dim));
  in.softcap = shape.softcap;
  in.kv_base = reinterpret_cast<const uint8_t*>(keys.memory_.data());
  in.page_stride = keys.page_bytes_;
  in.page_table = keys.table_.data();
  in.kv_tokens = shape.tokens;

  const auto state_size = static_cast<size_t>(shape.rows * (keys.padded_ + 2));
  std::vector<float> part_memory(state_size, NAN);
  std::vector<float> total_memory(state_size, 0.0f);
  const AttentionState part{part_memory.data(), part_memory.data() + shape.rows, part_memory.data() + 2 * shape.rows};
  const AttentionState total{total_memory.data(), total_memory.data() + shape.rows,
                             total_memory.data() + 2 * shape.rows};
  std::fill_n(total.max, shape.rows, -1e30f);
  std::vector<float> scores(static_cast<size_t>(shape.rows * (shape.tokens + kKeyTile)));
  if (full) kernels.attend_full_bf16(in, shape.tokens, scores.data(), total);
  for (int64_t first = 0; !full && first < shape.tokens; first += kKeySplit) {
    (kernels.*kv.kernels).attend(in, first, std::min<int64_t>(first + kKeySplit, shape.tokens), part);
    kernels.merge(shape.rows, keys.padded_, part, total);
  }
  std::vector<float> sinks(static_cast<size_t>(shape.rows));
  for (float& sink : sinks) sink = std::normal_distribution<float>()(random);
  kernels.finish(shape.rows, keys.padded_, shape.sinks ? sinks.data() : nullptr, total);

  for (const bool rounded : {false, true}) {
    if (rounded) keys.round(kv, shape.head_dim);
    for (int32_t r = 0; r < shape.rows; ++r) {
      const auto want = plain_attention(shape, keys, in.q[r], in.position[r], in.scale,
                                        shape.sinks ? &sinks[static_cast<size_t>(r)] : nullptr);
      for (int32_t d = 0; d < shape.head_dim; ++d) {
        ASSERT_NEAR(total.out[r * keys.padded_ + d], want[static_cast<size_t>(d)],
                    rounded ? kv.rounded_error : kv.error)
            << kernels.name << " " << kv.name << (rounded ? " rounded" : "") << " head_dim " << shape.head_dim
            << " tokens " << shape.tokens << " row " << r << " d " << d;
      }
    }
  }
}

void check_shapes(const Kernels* kernels) {
  if (kernels == nullptr) GTEST_SKIP() << "this CPU lacks the instruction set";
  std::vector<Shape> shapes = {
      {64, 1, 1, 0, 0, false},      {64, 7, 7, 0, 0, false},       {64, 28, 300, 0, 0, false},
      {16, 3, 65, 0, 0, false},     {80, 5, 129, 0, 0, true},      {96, 4, 1100, 0, 0, false},
      {128, 32, 513, 0, 0, false},  {256, 8, 700, 0, 0, false},    {64, 9, 1600, 100, 0, true},
      {32, 12, 2000, 33, 0, false}, {64, 6, 600, 0, 20.0f, false}, {24, 4, 50, 16, 5.0f, true},
      {512, 2, 90, 0, 0, false},
  };
  // Every run of rows that kernels unroll, and every number of tokens in the last page.
  for (int32_t rows = 1; rows <= 8; ++rows) shapes.push_back({80, rows, 2 * kPageTokens + 2 * rows - 1, 0, 0, false});
  for (int64_t tokens = 65; tokens <= 80; ++tokens) shapes.push_back({64, 2, tokens, 0, 0, false});
  for (const Shape& shape : shapes) {
    for (const KvCase& kv : kKvCases) check(*kernels, kv, shape, 11, false);
    if (kernels->attend_full_bf16 != nullptr) check(*kernels, kBf16, shape, 11, true);
  }
}

TEST(Attention, ScalarMatchesPlainSoftmax) { check_shapes(&scalar_kernels()); }
TEST(Attention, Avx2MatchesPlainSoftmax) { check_shapes(avx2_kernels()); }
TEST(Attention, Avx512MatchesPlainSoftmax) { check_shapes(avx512_kernels()); }

}  // namespace
}  // namespace quire::cpu
