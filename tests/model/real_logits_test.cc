// Real models against an fp32 oracle (tests/golden/README.md): log-probabilities, perplexity and greedy continuations,
// with f32 activations and with the default ones; SmolLM2 also with f32 activations and f16 or int8 KV. Needs the models:
// QUIRE_MODELS names their directory.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/test_model.h"

namespace quire {
namespace {

using nlohmann::json;

struct Case {
  std::string golden;
  std::string file;
  CpuDeviceOptions::Isa isa;
  bool f32;
  KvType kv;

  bool exact() const { return f32 && kv == KvType::kF32; }
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.golden << " " << isa_name(c.isa) << (c.f32 ? " f32 " : " default ") << kv_type_name(c.kv) << " KV";
}

json read_json(const std::string& path) {
  std::ifstream in(path);
  return json::parse(in, nullptr, false);
}

class RealLogits : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const char* directory = std::getenv("QUIRE_MODELS");
    if (directory == nullptr) GTEST_SKIP() << "QUIRE_MODELS is not set";
    const std::string path = std::string(directory) + "/" + GetParam().file;
    if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is missing";
    TestModelOptions options;
    options.device = {.isa = GetParam().isa, .threads = 2, .f32 = GetParam().f32, .kv = GetParam().kv};
    options.context = 2048;
    auto model = TestModel::load(path, options);
    if (!model.ok() && lacks_isa(model.status())) GTEST_SKIP() << model.status().message();
    ASSERT_TRUE(model.ok()) << model.status().message();
    model_ = std::move(*model);
  }

  void TearDown() override {
    if (model_ == nullptr) return;
    EXPECT_EQ(model_->model().device().scalar_fallbacks(), 0);
  }

  std::string golden(const std::string& folder) const {
    return std::string(QUIRE_SOURCE_DIR) + "/tests/golden/" + folder + "/" + GetParam().golden + ".json";
  }

  std::unique_ptr<TestModel> model_;
};

TEST_P(RealLogits, NextLogprobs) {
  const json all = read_json(golden("logits"));
  ASSERT_TRUE(all.is_object());
  for (const json& prompt : all["prompts"]) {
    const auto ids = prompt["ids"].get<std::vector<int32_t>>();
    const auto want = prompt["next_logprob"].get<std::vector<float>>();
    if (want.empty()) continue;
    const std::vector<float> got = model_->next_logprobs(ids);
    double worst = 0;
    double squares = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      const double error = got[i] - want[i];
      worst = std::max(worst, std::isfinite(error) ? std::abs(error) : 1e9);
      squares += error * error;
    }
    const double rms = std::sqrt(squares / static_cast<double>(want.size()));
    const std::string name = prompt["name"];
    std::printf("  %-14s %4zu tokens: RMS %.4f, worst %.4f\n", name.c_str(), ids.size(), rms, worst);
    if (GetParam().exact()) {
      EXPECT_LE(worst, 5e-3) << name;
    } else if (GetParam().f32) {
      EXPECT_LE(worst, GetParam().kv == KvType::kF16 ? 3e-2 : 1.0) << name;
    } else if (ids.size() >= 17) {
      EXPECT_LE(rms, name == "english-700" ? 0.10 : 0.35) << name;
    }
  }
}

TEST_P(RealLogits, Perplexity) {
  if (!std::filesystem::exists(golden("ppl"))) GTEST_SKIP() << "no perplexity golden";
  const json all = read_json(golden("ppl"));
  const auto ids = all["ids"].get<std::vector<int32_t>>();
  const double want = all["perplexity"];
  const std::vector<float> got = model_->next_logprobs(ids);
  double sum = 0;
  for (const float logprob : got) sum += logprob;
  const double perplexity = std::exp(-sum / static_cast<double>(got.size()));
  std::printf("  perplexity %.4f, oracle %.4f (%+.3f %%)\n", perplexity, want, 100 * (perplexity / want - 1));
  EXPECT_NEAR(perplexity / want, 1.0, GetParam().exact() ? 0.0005 : (GetParam().f32 ? 0.003 : 0.01));
}

TEST_P(RealLogits, Greedy) {
  const json all = read_json(golden("logits"));
  const double least_gap = GetParam().exact() ? 0.01 : 0.5;
  for (const json& prompt : all["prompts"]) {
    // One token over and over: a few channels dwarf the rest, and int8 activations move single log-probabilities by
    // three, on every instruction set.
    if (!GetParam().f32 && prompt["name"] == "repeated-token") continue;
    const auto ids = prompt["ids"].get<std::vector<int32_t>>();
    const auto want = prompt["greedy"].get<std::vector<int32_t>>();
    const auto gaps = prompt["greedy_gap"].get<std::vector<double>>();
    std::vector<float> row = model_->logits(ids, 0, 512);
    row.erase(row.begin(), row.end() - model_->vocab());
    for (size_t i = 0; i < want.size() && gaps[i] >= least_gap; ++i) {
      const auto best = static_cast<int32_t>(std::max_element(row.begin(), row.end()) - row.begin());
      ASSERT_EQ(best, want[i]) << prompt["name"] << " step " << i << ", gap " << gaps[i];
      row = model_->logits(std::span(&best, 1), static_cast<int64_t>(ids.size() + i), 1);
    }
  }
}

std::vector<Case> cases() {
  constexpr std::pair<const char*, const char*> kModels[] = {{"smollm2", "smollm2-135m-instruct-q4_1.gguf"},
                                                             {"qwen05", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"},
                                                             {"gemma3", "gemma3-270m-q4_k_m.gguf"},
                                                             {"qwen15", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"}};
  std::vector<Case> all;
  for (const auto& [golden, file] : kModels) {
    for (const auto isa : kEveryIsa) {
      if (isa == CpuDeviceOptions::Isa::kScalar) continue;  // too slow
      for (const bool f32 : {true, false}) all.push_back({golden, file, isa, f32, f32 ? KvType::kF32 : KvType::kBF16});
    }
  }
  // KV of other types by itself: tiny_logits_test.cc has every instruction set.
  for (const KvType kv : {KvType::kF16, KvType::kI8})
    all.push_back({kModels[0].first, kModels[0].second, CpuDeviceOptions::Isa::kAuto, true, kv});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Golden, RealLogits, testing::ValuesIn(cases()));

}  // namespace
}  // namespace quire
