// The promise everything later rests on: a row's result does not depend on what else is in its step. Random steps over
// several sequences, in any chunking, on shuffled pages whose free slots hold NaN, must give each row the very bits
// that the sequence gets alone, on one thread or several.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "support/random_checkpoint.h"
#include "support/test_model.h"

namespace quire {
namespace {

struct Case {
  DType dtype;
  CpuDeviceOptions::Isa isa;
  bool f32;
  KvType kv;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << dtype_info(c.dtype).name << " " << isa_name(c.isa) << (c.f32 ? " f32 " : " ") << kv_type_name(c.kv) << " KV";
}

uint64_t test_seed() {
  const char* given = std::getenv("QUIRE_TEST_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
}

// One random run: every sequence is fed to its end in random portions, several sequences a step.
class RandomSteps {
 public:
  RandomSteps(TestModel& model, const std::vector<std::vector<int32_t>>& ids, std::mt19937_64& random)
      : model_(model), ids_(ids), random_(random), done_(ids.size(), 0), logits_(ids.size()) {
    for (size_t s = 0; s < ids.size(); ++s) logits_[s].resize(ids[s].size() * static_cast<size_t>(model.vocab()));
  }

  // Logits of every row, per sequence.
  const std::vector<std::vector<float>>& run(int64_t max_rows) {
    while (step(max_rows)) {
    }
    return logits_;
  }

 private:
  bool step(int64_t max_rows) {
    static constexpr int64_t kPortions[] = {1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 13, 16, 17, 31, 32, 33, 127, 512};
    StepInput input;
    std::vector<std::pair<size_t, size_t>> rows;  // sequence, position
    std::vector<size_t> order(ids_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::shuffle(order.begin(), order.end(), random_);
    for (const size_t s : order) {
      const auto left = static_cast<int64_t>(ids_[s].size() - done_[s]);
      const int64_t room = max_rows - static_cast<int64_t>(rows.size());
      const int64_t wish = kPortions[random_() % std::size(kPortions)];
      const int64_t count = std::min({wish, left, room});
      if (count == 0 || (!rows.empty() && random_() % 4 == 0)) continue;
      input.sequences.push_back({.rows = count,
                                 .first_position = static_cast<int64_t>(done_[s]),
                                 .page_tables = model_.page_tables(static_cast<int64_t>(s))});
      for (int64_t i = 0; i < count; ++i) {
        rows.emplace_back(s, done_[s]);
        input.tokens.push_back(ids_[s][done_[s]++]);
      }
    }
    if (rows.empty()) return false;
    const auto vocab = static_cast<size_t>(model_.vocab());
    std::vector<float> out(rows.size() * vocab);
    std::vector<int32_t> wanted(rows.size());
    std::iota(wanted.begin(), wanted.end(), 0);
    EXPECT_TRUE(model_.model().forward(input).ok());
    model_.model().logits(wanted, out.data());
    for (size_t i = 0; i < rows.size(); ++i) {
      std::copy_n(out.begin() + static_cast<int64_t>(i * vocab), vocab,
                  logits_[rows[i].first].begin() + static_cast<int64_t>(rows[i].second * vocab));
    }
    return true;
  }

  TestModel& model_;
  const std::vector<std::vector<int32_t>>& ids_;
  std::mt19937_64& random_;
  std::vector<size_t> done_;
  std::vector<std::vector<float>> logits_;
};

void expect_same_bits(const std::vector<float>& got, const std::vector<float>& want, int64_t vocab,
                      const std::string& what) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_TRUE(std::isfinite(want[i])) << what << ", row " << i / static_cast<size_t>(vocab);
    ASSERT_EQ(std::memcmp(&got[i], &want[i], sizeof(float)), 0)
        << what << ", row " << i / static_cast<size_t>(vocab) << ": " << got[i] << " and " << want[i];
  }
}

// Sets K factors measured on two random passages, and returns them.
std::vector<float> measure_factors(TestModel& model, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::vector<int32_t>> passages(2, std::vector<int32_t>(30));
  for (auto& passage : passages) {
    for (int32_t& id : passage) id = static_cast<int32_t>(random() % static_cast<uint64_t>(model.vocab()));
  }
  const auto factors = model.model().measure_k_factors(passages);
  EXPECT_TRUE(factors.ok()) << factors.status().message();
  if (!factors.ok()) return {};
  model.model().set_k_factors(*factors);
  return *factors;
}

void check_invariance(const std::string& path, CpuDeviceOptions device, const std::vector<int64_t>& lengths,
                      uint64_t seed) {
  std::mt19937_64 random(seed);
  const int64_t context = *std::max_element(lengths.begin(), lengths.end());
  TestModelOptions options;
  options.device = device;
  options.device.threads = 1;
  options.context = context;
  options.sequences = 1;
  auto solo = TestModel::load(path, options);
  if (!solo.ok() && lacks_isa(solo.status())) GTEST_SKIP() << solo.status().message();
  ASSERT_TRUE(solo.ok()) << solo.status().message();

  std::vector<float> factors;
  if (device.kv == KvType::kI8) factors = measure_factors(**solo, seed);
  std::vector<std::vector<int32_t>> ids;
  std::vector<std::vector<float>> want;
  for (const int64_t length : lengths) {
    std::vector<int32_t>& sequence = ids.emplace_back();
    for (int64_t i = 0; i < length; ++i)
      sequence.push_back(static_cast<int32_t>(random() % static_cast<uint64_t>((*solo)->vocab())));
    want.push_back((*solo)->logits(sequence, 0, 512));
  }
  for (const int threads : {1, 2}) {
    options.device.threads = threads;
    options.sequences = static_cast<int64_t>(ids.size());
    options.page_seed = random() | 1;
    auto shared = TestModel::load(path, options);
    ASSERT_TRUE(shared.ok()) << shared.status().message();
    if (device.kv == KvType::kI8) {
      ASSERT_EQ(measure_factors(**shared, seed), factors);
    }
    RandomSteps steps(**shared, ids, random);
    const auto& got = steps.run(512);
    for (size_t s = 0; s < ids.size(); ++s) {
      expect_same_bits(
          got[s], want[s], (*solo)->vocab(),
          "seed " + std::to_string(seed) + ", " + std::to_string(threads) + " threads, sequence " + std::to_string(s));
    }
    EXPECT_EQ((*shared)->model().device().scalar_fallbacks(), 0);
  }
}

class Invariance : public testing::TestWithParam<Case> {};

TEST_P(Invariance, RowsDoNotDependOnTheirStep) {
  const Case& c = GetParam();
  const std::string path = testing::TempDir() + "/quire-invariance-" + std::to_string(static_cast<int>(c.dtype)) + "-" +
                           isa_name(c.isa) + (c.f32 ? "-f-" : "-d-") + kv_type_name(c.kv) + ".gguf";
  const uint64_t seed = test_seed();
  write_random_checkpoint(path, c.dtype, seed);
  const bool slow = c.isa == CpuDeviceOptions::Isa::kScalar;
  check_invariance(path, {.isa = c.isa, .f32 = c.f32, .kv = c.kv},
                   slow ? std::vector<int64_t>{37, 70, 16} : std::vector<int64_t>{200, 33, 64, 130, 7}, seed);
  std::filesystem::remove(path);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const DTypeInfo& info : all_dtypes()) {
    for (const auto isa : kEveryIsa) {
      for (const bool f32 : {false, true}) all.push_back({info.dtype, isa, f32, f32 ? KvType::kF32 : KvType::kBF16});
    }
  }
  // What pages hold has nothing to do with the weights: one type of them is enough.
  for (const auto isa : kEveryIsa) {
    for (const KvType kv : {KvType::kF16, KvType::kI8}) all.push_back({DType::kQ8_0, isa, false, kv});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Types, Invariance, testing::ValuesIn(cases()));

// Long enough for four splits of 512 keys, with global and sliding-window layers, on one thread and two (where a
// decode step shares its splits out).
class LongInvariance : public testing::TestWithParam<std::tuple<std::string, CpuDeviceOptions::Isa, KvType>> {};

TEST_P(LongInvariance, SplitsDoNotShow) {
  const auto& [name, isa, kv] = GetParam();
  check_invariance(std::string(QUIRE_SOURCE_DIR) + "/tests/golden/tiny/" + name,
                   {.isa = isa, .f32 = kv == KvType::kF32, .kv = kv}, {1700, 530, 40}, test_seed());
}

INSTANTIATE_TEST_SUITE_P(Tiny, LongInvariance,
                         testing::Combine(testing::Values("llama-mqa-sharded", "llama-gqa-llama3rope", "gemma3"),
                                          testing::ValuesIn(kEveryIsa), testing::ValuesIn(kEveryKvType)));

class KFactorInvariance : public testing::TestWithParam<std::tuple<std::string, CpuDeviceOptions::Isa>> {
 protected:
  Result<std::unique_ptr<TestModel>> load(KvType kv, int threads, int64_t max_rows) const {
    TestModelOptions options;
    options.device = {.isa = std::get<1>(GetParam()), .threads = threads, .f32 = kv == KvType::kF32, .kv = kv};
    options.max_rows = max_rows;
    return TestModel::load(std::string(QUIRE_SOURCE_DIR) + "/tests/golden/tiny/" + std::get<0>(GetParam()), options);
  }
};

// Factors are part of what results depend on: they must not depend on how they came about.
TEST_P(KFactorInvariance, FactorsDoNotDependOnThreadsStepsOrEarlierFactors) {
  std::vector<float> want;
  for (const auto& [threads, max_rows] : {std::pair(1, 512), std::pair(2, 512), std::pair(3, 7), std::pair(1, 1)}) {
    auto model = load(KvType::kI8, threads, max_rows);
    if (!model.ok() && lacks_isa(model.status())) GTEST_SKIP() << model.status().message();
    ASSERT_TRUE(model.ok()) << model.status().message();
    const std::vector<float> factors = measure_factors(**model, 3);
    if (want.empty()) want = factors;
    EXPECT_EQ(factors, want) << threads << " threads, steps of " << max_rows;
    EXPECT_EQ(measure_factors(**model, 3), want) << "again, with factors set";
    EXPECT_NE(measure_factors(**model, 4), want) << "on other passages";
  }
}

// In exact arithmetic factors change nothing.
TEST_P(KFactorInvariance, FactorsCancelOut) {
  auto model = load(KvType::kF32, 2, 512);
  if (!model.ok() && lacks_isa(model.status())) GTEST_SKIP() << model.status().message();
  ASSERT_TRUE(model.ok()) << model.status().message();
  std::vector<int32_t> ids(100);
  std::iota(ids.begin(), ids.end(), 3);
  const std::vector<float> want = (*model)->logits(ids, 0, 512);
  const ModelConfig& config = (*model)->model().config();
  std::mt19937_64 random(9);
  std::uniform_real_distribution<float> exponent(-3, 3);
  std::vector<float> factors(config.layers.size() * static_cast<size_t>(config.heads.kv_heads * config.heads.head_dim));
  const auto half = static_cast<size_t>(config.rope_dim / 2);
  for (size_t i = 0; i < factors.size(); ++i) {
    const size_t channel = i % static_cast<size_t>(config.heads.head_dim);
    factors[i] = channel >= half && channel < 2 * half ? factors[i - half] : std::exp(exponent(random));
  }
  (*model)->model().set_k_factors(factors);
  const std::vector<float> got = (*model)->logits(ids, 0, 512);
  double worst = 0;
  double largest = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    worst = std::max(worst, std::abs(double{got[i]} - double{want[i]}));
    largest = std::max(largest, std::abs(double{want[i]}));
  }
  EXPECT_LT(worst, 1e-4 * largest);
  EXPECT_GT(worst, 0) << "the factors were not used";
}

INSTANTIATE_TEST_SUITE_P(Tiny, KFactorInvariance,
                         testing::Combine(testing::Values("llama-gqa-llama3rope", "gemma3", "qwen2"),
                                          testing::ValuesIn(kEveryIsa)));

// A pipeline of two stages gives what one pass over all layers gives.
TEST(LayerRange, StagesComposeExactly) {
  TestModelOptions options;
  auto model = TestModel::load(std::string(QUIRE_SOURCE_DIR) + "/tests/golden/tiny/gemma3", options);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const std::vector<int32_t> ids = {5, 17, 200, 3, 42, 99, 7};
  const std::vector<float> want = (*model)->logits(ids, 0, 512);
  (*model)->poison();
  std::vector<float> hidden(ids.size() * static_cast<size_t>((*model)->model().config().hidden));
  std::vector<float> got(want.size());
  StepInput stage;
  stage.sequences.push_back(
      {.rows = static_cast<int64_t>(ids.size()), .first_position = 0, .page_tables = (*model)->page_tables(0)});
  stage.tokens = ids;
  stage.last_layer = 2;
  stage.hidden_out = hidden.data();
  ASSERT_TRUE((*model)->model().forward(stage).ok());
  stage.hidden_in = hidden.data();
  stage.hidden_out = nullptr;
  stage.first_layer = 2;
  stage.last_layer = -1;
  ASSERT_TRUE((*model)->model().forward(stage).ok());
  (*model)->model().logits(std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6}, got.data());
  expect_same_bits(got, want, (*model)->vocab(), "two stages");
}

}  // namespace
}  // namespace quire
