// Evaluation of whole models, on tiny checkpoints whose logits other programs computed (tests/golden/quantized).
// Expected divergences: scipy's log_softmax in f64 over those logits, rows 100 to 198 of "logits_200".

#include "eval/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "formats/safetensors_file.h"
#include "support/test_model.h"

namespace quire {
namespace {

std::string directory_of(const std::string& name) {
  return std::string(QUIRE_SOURCE_DIR) + "/tests/golden/quantized/" + name;
}

std::vector<int32_t> golden_ids() {
  const auto file = SafetensorsFile::open(directory_of("base") + "/expected.safetensors");
  std::vector<int32_t> ids;
  if (!file.ok()) return ids;
  for (const SafetensorsEntry& entry : file->tensors) {
    if (entry.name != "ids_200") continue;
    std::vector<int64_t> wide(static_cast<size_t>(entry.bytes) / sizeof(int64_t));
    std::memcpy(wide.data(), entry.data, static_cast<size_t>(entry.bytes));
    ids.assign(wide.begin(), wide.end());
  }
  return ids;
}

EvalText text_of(int64_t window) {
  auto text = EvalText::from_tokens("golden ids", golden_ids(), -1, window, 0);
  if (!text.ok()) ADD_FAILURE() << text.status().message();
  return text.ok() ? *text : EvalText();
}

struct Judged {
  std::unique_ptr<TestModel> holder;
  EvalModel model;
};

// f32 throughout, with pages for `windows` windows of `window` tokens.
Judged load(const std::string& name, int64_t window, int64_t windows = 1, int64_t max_rows = 512) {
  TestModelOptions options;
  options.device.threads = 2;
  options.device.f32 = true;
  options.context = window;
  options.sequences = windows;
  options.max_rows = max_rows;
  auto model = TestModel::load(directory_of(name), options);
  if (!model.ok()) ADD_FAILURE() << model.status().message();
  Judged judged{.holder = std::move(*model), .model = {}};
  judged.model = {.name = name, .model = &judged.holder->model(), .max_rows = max_rows};
  return judged;
}

Evaluation evaluated(const EvalModel* reference, const std::vector<EvalModel>& candidates, const EvalText& text,
                     const EvalOptions& options = {}) {
  auto result = evaluate(reference, candidates, text, options);
  if (!result.ok()) ADD_FAILURE() << result.status().message();
  return result.ok() ? *result : Evaluation();
}

TEST(Evaluate, AgreesWithTheGoldenLogits) {
  const EvalText text = text_of(200);
  const Judged base = load("base", 200);
  const Judged int4 = load("gptq-4bit-g32-sym", 200);
  const Judged int8 = load("ct-w8a16-channel", 200);
  const Evaluation result = evaluated(&base.model, {int4.model, int8.model}, text);
  ASSERT_EQ(result.windows, 1);
  // Logits may be 2e-3 off (tests/golden/README.md), and so may log-probabilities be.
  EXPECT_NEAR(perplexity(result.reference).value / 1940440.5822303812, 1, 1e-3);
  const auto& coarse = result.candidates[0];
  EXPECT_EQ(coarse[0].tokens, 99);
  EXPECT_NEAR(mean_kl(coarse).value, 0.5970150609019871, 1e-3);
  EXPECT_NEAR(perplexity(coarse).value / 1916312.0095114259, 1, 1e-3);
  EXPECT_EQ(coarse[0].same_top, 55);
  EXPECT_NEAR(logprob_rms(coarse), 1.8694001979632937, 2e-3);
  EXPECT_NEAR(logprob_max(coarse), 6.142931627281589, 4e-3);
  EXPECT_NEAR(logit_max(coarse), 9.870655298233032, 4e-3);
  const auto& fine = result.candidates[1];
  EXPECT_NEAR(mean_kl(fine).value, 0.011585930653941853, 1e-4);
  EXPECT_NEAR(perplexity(fine).value / 1973608.992787879, 1, 1e-3);
  EXPECT_EQ(fine[0].same_top, 92);
  EXPECT_NEAR(logprob_rms(fine), 0.25625309883709657, 1e-3);
}

TEST(Evaluate, AModelDoesNotDivergeFromItself) {
  const EvalText text = text_of(40);
  const Judged one = load("base", 40);
  const Judged other = load("base", 40, 5);
  const Evaluation result = evaluated(&one.model, {other.model}, text);
  ASSERT_EQ(result.windows, 5);
  for (const WindowScore& window : result.candidates[0]) {
    EXPECT_EQ(window.kl, 0);
    EXPECT_EQ(window.same_top, window.tokens);
    EXPECT_EQ(window.logit_max, 0);
  }
}

// However the windows are dealt to steps, the same bits.
TEST(Evaluate, StepsDoNotShowInTheResult) {
  const EvalText text = text_of(40);
  const auto scores = [&](int64_t windows, int64_t max_rows) {
    const Judged base = load("base", 40, windows, max_rows);
    const Judged int4 = load("gptq-4bit-g32-sym", 40, windows, max_rows);
    std::vector<double> values;
    const Evaluation result = evaluated(&base.model, {int4.model}, text);
    for (const WindowScore& window : result.candidates[0])
      values.insert(values.end(), {window.nll, window.kl, window.logprob_squares, static_cast<double>(window.tokens)});
    return values;
  };
  const auto whole = scores(5, 512);
  ASSERT_EQ(whole.size(), 5u * 4);
  EXPECT_EQ(scores(2, 512), whole);
  EXPECT_EQ(scores(1, 40), whole);
  EXPECT_EQ(scores(1, 16), whole);
  EXPECT_EQ(scores(3, 7), whole);
}

TEST(Evaluate, WithoutReferenceOnlyLikelihoods) {
  const EvalText text = text_of(100);
  const Judged base = load("base", 100);
  const Evaluation result = evaluated(nullptr, {base.model}, text);
  EXPECT_TRUE(result.reference.empty());
  ASSERT_EQ(result.candidates[0].size(), 2u);
  EXPECT_EQ(result.candidates[0][0].kl, 0);
  // The same likelihoods from the model asked row by row.
  const auto ids = text.tokens_of(1);
  const std::vector<float> logprobs = base.holder->next_logprobs(ids);
  double nll = 0;
  for (size_t i = 50; i < 99; ++i) nll -= logprobs[i];
  EXPECT_NEAR(result.candidates[0][1].nll, nll, 1e-3);
}

TEST(Evaluate, TimeAndCallerCanStopIt) {
  const EvalText text = text_of(40);
  const Judged base = load("base", 40);
  EXPECT_EQ(evaluated(nullptr, {base.model}, text, {.max_seconds = 1e-9, .progress = nullptr}).windows, 1);
  int calls = 0;
  const auto stopped = evaluate(nullptr, std::span(&base.model, 1), text, {.progress = [&](double fraction) {
                                  EXPECT_NEAR(fraction, ++calls / 5.0, 1e-9);
                                  return calls < 2;
                                }});
  EXPECT_EQ(stopped.status().code(), StatusCode::kCancelled);
  EXPECT_EQ(calls, 2);
}

TEST(Evaluate, SaysWhyModelsCannotBeJudged) {
  const EvalText text = text_of(40);
  const Judged base = load("base", 40);
  const Judged small = load("base", 16);
  const auto few_pages = evaluate(&base.model, std::span(&small.model, 1), text, {});
  EXPECT_EQ(few_pages.status().message(), "base: too few KV pages for a window of 40 tokens: give a smaller window");

  TestModelOptions options;
  options.context = 40;
  const auto other = TestModel::load(std::string(QUIRE_SOURCE_DIR) + "/tests/golden/tiny/llama-mha-spm", options);
  ASSERT_TRUE(other.ok()) << other.status().message();
  const EvalModel spm = {.name = "llama-mha-spm", .model = &(*other)->model(), .max_rows = 512};
  const auto mismatch = evaluate(&base.model, std::span(&spm, 1), text, {});
  EXPECT_NE(mismatch.status().message().find(
                "llama-mha-spm: its vocabulary has 360 tokens, that of the model it is compared with 296"),
            std::string::npos);
}

}  // namespace
}  // namespace quire
