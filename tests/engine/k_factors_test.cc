// K factors of int8 pages as a model gets them while it loads: from its file or measured, as part of what prefixes are found
// by, and what they are good for: int8 pages must change neither perplexity nor distributions by more than is stated.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "capacity/loaded_model.h"
#include "model/registry.h"
#include "support/test_model.h"
#include "vocab/tokenizer_source.h"

namespace quire {
namespace {

// A checkpoint whose file brought K factors.
class CheckpointWithFactors final : public Checkpoint {
 public:
  CheckpointWithFactors(const Checkpoint& plain, std::vector<float> factors) : plain_(plain) {
    hparams_ = plain.hparams();
    set_tensors({plain.tensors().begin(), plain.tensors().end()});
    notes_.k_factors = std::move(factors);
    path_ = plain.path();
  }
  std::string_view format() const override { return plain_.format(); }
  const MetaValue* meta(std::string_view key) const override { return plain_.meta(key); }
  const std::string* document(std::string_view name) const override { return plain_.document(name); }

 private:
  const Checkpoint& plain_;
};

class KFactorLoading : public testing::Test {
 protected:
  void SetUp() override {
    const std::string path = std::string(QUIRE_SOURCE_DIR) + "/tests/golden/tiny/qwen2";
    options_.model_path = path;
    options_.kv_dtype = KvDtype::kInt8;
    checkpoint_ = open();
    ASSERT_NE(checkpoint_, nullptr);
  }

  std::unique_ptr<Checkpoint> open() const {
    auto checkpoint = Checkpoint::open(options_.model_path);
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status().message();
    return checkpoint.ok() ? std::move(*checkpoint) : nullptr;
  }

  Result<LoadedModel> load() { return load(open()); }
  Result<LoadedModel> load(std::unique_ptr<Checkpoint> checkpoint) {
    OpenedModel& opened = opened_.emplace_back();
    opened.options = options_;
    QUIRE_ASSIGN_OR_RETURN(opened.config, configure_model(checkpoint->hparams()));
    QUIRE_ASSIGN_OR_RETURN(opened.tokenizer, load_tokenizer(*checkpoint));
    opened.checkpoint = std::move(checkpoint);
    ModelLimits limits;
    limits.workspace = {.max_rows = 512, .max_context = 512};
    limits.kv_pages.assign(opened.config.kv_groups.size(), 32);
    return load_model(opened, limits, nullptr);
  }

  static std::vector<float> factors_of(const LoadedModel& loaded) {
    return {loaded.model->k_factors().begin(), loaded.model->k_factors().end()};
  }

  ModelOptions options_;
  std::unique_ptr<Checkpoint> checkpoint_;
  std::deque<OpenedModel> opened_;  // outlive what was loaded from them
};

TEST_F(KFactorLoading, AreMeasuredWhereTheFileHasNone) {
  const auto loaded = load();
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  const std::vector<float> factors = factors_of(*loaded);
  ASSERT_TRUE(check_k_factors(loaded->model->config(), factors, "measured").ok());
  EXPECT_NE(factors, std::vector<float>(factors.size(), 1.0f));
  ASSERT_EQ(loaded->notes.size(), 1u);
  EXPECT_TRUE(loaded->notes[0].starts_with("int8 KV: K factors from the shipped text, ")) << loaded->notes[0];
  const auto again = load();
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(factors_of(*again), factors);
  EXPECT_EQ(kv_fingerprint(options_, *again->model), kv_fingerprint(options_, *loaded->model));
}

TEST_F(KFactorLoading, OtherKvTypesHaveNone) {
  options_.kv_dtype = KvDtype::kBf16;
  const auto loaded = load();
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_TRUE(loaded->model->k_factors().empty());
  EXPECT_TRUE(loaded->notes.empty());
}

TEST_F(KFactorLoading, TheFilesAreUsedAndFoundByAnotherName) {
  const auto measured = load();
  ASSERT_TRUE(measured.ok());
  std::vector<float> given = factors_of(*measured);
  for (float& factor : given) factor *= 2;
  const auto loaded = load(std::make_unique<CheckpointWithFactors>(*checkpoint_, given));
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_EQ(factors_of(*loaded), given);
  ASSERT_EQ(loaded->notes.size(), 1u);
  EXPECT_EQ(loaded->notes[0], "int8 KV: K factors from the model file");
  EXPECT_NE(kv_fingerprint(options_, *loaded->model), kv_fingerprint(options_, *measured->model));
}

TEST_F(KFactorLoading, HostileOnesAreRefusedWithTheFilesName) {
  const auto measured = load();
  ASSERT_TRUE(measured.ok());
  std::vector<float> given = factors_of(*measured);
  given.pop_back();
  const auto loaded = load(std::make_unique<CheckpointWithFactors>(*checkpoint_, given));
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.status().code(), StatusCode::kCorrupt);
  EXPECT_NE(loaded.status().message().find(options_.model_path), std::string::npos) << loaded.status().message();
}

struct Quality {
  double perplexity_ratio = 0;  // of int8 to f32 pages
  double divergence = 0;        // mean Kullback-Leibler divergence of the distributions, nats
};

// Both models read `ids` step by step; logits of a few rows at a time, as all would not fit.
Quality compare(TestModel& exact, TestModel& int8, std::span<const int32_t> ids) {
  constexpr size_t kStep = 512;
  constexpr size_t kBlock = 16;
  const auto vocab = static_cast<size_t>(exact.vocab());
  std::vector<float> p(kBlock * vocab);
  std::vector<float> q(p.size());
  double difference = 0;
  Quality quality;
  for (size_t first = 0; first + 1 < ids.size(); first += kStep) {
    const size_t rows = std::min(kStep, ids.size() - 1 - first);
    for (TestModel* model : {&exact, &int8}) {
      StepInput step;
      step.sequences.push_back({.rows = static_cast<int64_t>(rows),
                                .first_position = static_cast<int64_t>(first),
                                .page_tables = model->page_tables(0)});
      step.tokens.assign(ids.begin() + static_cast<int64_t>(first), ids.begin() + static_cast<int64_t>(first + rows));
      EXPECT_TRUE(model->model().forward(step).ok());
    }
    for (size_t at = 0; at < rows; at += kBlock) {
      std::vector<int32_t> wanted(std::min(kBlock, rows - at));
      std::iota(wanted.begin(), wanted.end(), static_cast<int32_t>(at));
      exact.model().logits(wanted, p.data());
      int8.model().logits(wanted, q.data());
      for (size_t i = 0; i < wanted.size(); ++i) {
        const std::span<const float> p_row = std::span(p).subspan(i * vocab, vocab);
        const std::span<const float> q_row = std::span(q).subspan(i * vocab, vocab);
        const float p_sum = exact.model().log_sum_exp(p_row);
        const float q_sum = exact.model().log_sum_exp(q_row);
        const auto target = static_cast<size_t>(ids[first + at + i + 1]);
        difference += double{p_row[target] - p_sum} - double{q_row[target] - q_sum};
        for (size_t t = 0; t < vocab; ++t) {
          const float log_p = p_row[t] - p_sum;
          if (log_p < -20) continue;
          quality.divergence += double{std::exp(log_p) * (log_p - (q_row[t] - q_sum))};
        }
      }
    }
  }
  const auto scored = static_cast<double>(ids.size() - 1);
  quality.perplexity_ratio = std::exp(difference / scored);
  quality.divergence /= scored;
  return quality;
}

struct QualityCase {
  const char* golden;  // in golden/ppl: the ids
  const char* file;
  bool always;  // not only in the full run
};

class KFactorQuality : public testing::TestWithParam<QualityCase> {};

TEST_P(KFactorQuality, Int8PagesAreAlmostF32Pages) {
  const char* directory = std::getenv("QUIRE_MODELS");
  if (directory == nullptr) GTEST_SKIP() << "QUIRE_MODELS is not set";
  const bool full = std::getenv("QUIRE_FULL") != nullptr;
  if (!full && !GetParam().always) GTEST_SKIP() << "takes a while: part of the full run";
  const std::string path = std::string(directory) + "/" + GetParam().file;
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is missing";
  std::ifstream in(std::string(QUIRE_SOURCE_DIR) + "/tests/golden/ppl/" + GetParam().golden + ".json");
  auto ids = nlohmann::json::parse(in)["ids"].get<std::vector<int32_t>>();
  if (!full) ids.resize(513);

  TestModelOptions options;
  options.context = static_cast<int64_t>(ids.size());
  options.device = {.threads = 2, .f32 = true, .kv = KvType::kF32};
  auto exact = TestModel::load(path, options);
  ASSERT_TRUE(exact.ok()) << exact.status().message();
  options.device.kv = KvType::kI8;
  auto int8 = TestModel::load(path, options);
  ASSERT_TRUE(int8.ok()) << int8.status().message();
  const auto tokenizer = load_tokenizer((*int8)->checkpoint());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  const auto note = set_k_factors((*int8)->model(), (*int8)->checkpoint(), **tokenizer);
  ASSERT_TRUE(note.ok()) << note.status().message();
  const Quality quality = compare(**exact, **int8, ids);
  std::printf("  perplexity %+.3f %%, divergence %.2g nats over %zu tokens\n", 100 * (quality.perplexity_ratio - 1),
              quality.divergence, ids.size() - 1);
  EXPECT_LE(quality.perplexity_ratio, 1.003);
  EXPECT_LE(quality.divergence, 2e-3);
}

INSTANTIATE_TEST_SUITE_P(Real, KFactorQuality,
                         testing::Values(QualityCase{"smollm2", "smollm2-135m-instruct-q4_1.gguf", true},
                                         QualityCase{"gemma3", "gemma3-270m-q4_k_m.gguf", false},
                                         QualityCase{"qwen05", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", false},
                                         QualityCase{"qwen05", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", false}));

}  // namespace
}  // namespace quire
