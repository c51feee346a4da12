// A recorded run comes out the same from its bytes alone, and a wrong page is found in the step that it was planted in.
#include "engine/replay.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "capacity/model_setup.h"
#include "engine/engine_core.h"
#include "model/registry.h"
#include "vocab/tokenizer_source.h"

namespace quire {
namespace {

constexpr int64_t kContext = 256;
constexpr int64_t kPages = 24;  // fewer than eight sequences want, so some are preempted

// Gives one decode a page of another sequence, the first time from a given step on that this is possible.
class WrongPage final : public Executor {
 public:
  // `group`: one without a window, so that the page is read.
  WrongPage(Executor& inner, int64_t from_step, size_t group) : inner_(inner), from_step_(from_step), group_(group) {}
  int64_t vocab_size() const override { return inner_.vocab_size(); }
  Result<StepResult> run(const StepPlan& plan, const StepSampling& sampling) override {
    StepPlan changed = plan;
    for (size_t i = 0; i < plan.rows.size() && steps_ >= from_step_ && planted_at < 0; ++i) {
      if (plan.rows[i].rows != 1 || plan.page_table(i, group_).size() < 3) continue;
      const auto at = static_cast<size_t>(plan.page_offsets[i * static_cast<size_t>(plan.groups) + group_]);
      const PageId foreign = plan.page_table((i + 1) % plan.rows.size(), group_).front();
      if (foreign == changed.pages[at]) continue;
      changed.pages[at] = foreign;
      planted_at = steps_;
    }
    ++steps_;
    return inner_.run(changed, sampling);
  }

  int64_t planted_at = -1;

 private:
  Executor& inner_;
  int64_t from_step_;
  size_t group_;
  int64_t steps_ = 0;
};

class ReplayTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    path_ = std::filesystem::temp_directory_path() / ("quire_replay_" + std::to_string(getpid()));
    std::filesystem::remove(path_);
    model_ = std::string(QUIRE_SOURCE_DIR) + "/tests/golden/tiny/" + GetParam();
    run_.model.model_path = model_;
    checkpoint_ = std::move(*Checkpoint::open(model_));
    config_ = *configure_model(checkpoint_->hparams());
    tokenizer_ = std::move(*load_tokenizer(*checkpoint_));
    run_.bounds = {.vocab_size = config_.vocab_size,
                   .max_rows = 64,
                   .context = kContext,
                   .page_tokens = kPageTokens,
                   .groups = {}};
    for (const KvGroup& group : config_.kv_groups)
      run_.bounds.groups.push_back({.pages = kPages, .window = group.window});
    run_.logit_rows = 24;
  }
  void TearDown() override { std::filesystem::remove(path_); }

  std::unique_ptr<Executor> load(int threads) {
    auto executor = load_recorded(run_, threads, nullptr);
    EXPECT_TRUE(executor.ok()) << executor.status().message();
    return std::move(*executor);
  }

  // Serves a dozen requests, with drafts and branches, on `executor`, and records it.
  void record(Executor& executor) {
    auto recorder = RecordingExecutor::create(executor, path_, run_);
    ASSERT_TRUE(recorder.ok()) << recorder.status().message();
    SchedulerConfig config;
    config.max_step_rows = 64;
    config.max_seqs = 8;
    config.project_peak = false;
    std::vector<int64_t> pages(config_.kv_groups.size(), kPages);
    auto scheduler = Scheduler::create(config, kv_cache_config(config_, pages, kContext));
    ASSERT_TRUE(scheduler.ok()) << scheduler.status().message();
    const RequestLimits limits = RequestLimits::of(**scheduler, config_.vocab_size, kContext, 0);
    EngineObserver nobody;
    EngineCore core(std::move(*scheduler), **recorder, *tokenizer_, limits, nobody);
    core.set_drafter([](const Request&, int32_t, std::span<const int32_t> tokens) {
      return std::vector<int32_t>{tokens.back(), tokens[tokens.size() / 2]};
    });
    std::mt19937_64 random(1);
    int64_t now_ns = 1;
    for (int i = 0; i < 12; ++i) {
      Request request;
      request.id = std::to_string(i);
      for (uint64_t t = 0; t < 30 + random() % 40; ++t)
        request.prompt.push_back(static_cast<int32_t>(random() % static_cast<uint64_t>(config_.vocab_size)));
      request.max_tokens = 20;
      request.ignore_eos = true;
      request.choices = i % 4 == 1 ? 2 : 1;
      request.logprobs = i % 3 == 0 ? 2 : -1;
      request.prompt_logprobs = i % 5 == 2;
      request.sampling.seed = static_cast<uint64_t>(i);
      request.sampling.frequency_penalty = 0.5f;
      ASSERT_TRUE(core.submit(
                          std::move(request), [](const Event&) {}, now_ns)
                      .ok());
    }
    while (core.live_requests() > 0) core.step([&] { return now_ns += 1000; });
    EXPECT_GT(core.scheduler().counters().preemptions, 0);
    EXPECT_EQ((*recorder)->why_stopped(), "");
  }

  Result<ReplayReport> replay_with(int threads) {
    QUIRE_ASSIGN_OR_RETURN(RecordingReader reader, RecordingReader::open(path_));
    const auto executor = load(threads);
    return replay(reader, *executor);
  }

  std::string path_;
  std::string model_;
  RecordedRun run_;
  std::unique_ptr<Checkpoint> checkpoint_;
  ModelConfig config_;
  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_P(ReplayTest, StepsFromBytesGiveTheSameBits) {
  record(*load(1));
  for (const int threads : {1, 2}) {
    const auto report = replay_with(threads);
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_FALSE(report->first.has_value()) << "step " << report->first->step;
    EXPECT_GT(report->steps, 20);
    EXPECT_EQ(report->tokens >= 12 * 20, true);
    EXPECT_FALSE(report->cut_off);
  }
}

TEST_P(ReplayTest, AWrongPageIsFoundInItsStep) {
  const auto executor = load(1);
  size_t group = 0;
  while (config_.kv_groups[group].window != 0) ++group;
  WrongPage wrong(*executor, 15, group);
  record(wrong);
  ASSERT_GE(wrong.planted_at, 15);
  const auto report = replay_with(1);
  ASSERT_TRUE(report.ok()) << report.status().message();
  ASSERT_TRUE(report->first.has_value());
  EXPECT_EQ(report->first->step, wrong.planted_at);
}

TEST_P(ReplayTest, AFileThatWasCutOffCountsUpToThere) {
  record(*load(1));
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 5);
  const auto report = replay_with(1);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_TRUE(report->cut_off);
  EXPECT_FALSE(report->first.has_value());
}

TEST_P(ReplayTest, DamagedBytesAreRefusedOrWithinBounds) {
  record(*load(1));
  std::ifstream file(path_, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(file), {}};
  std::mt19937_64 random(2);
  for (int round = 0; round < 300; ++round) {
    std::string bytes = whole.substr(0, std::min<size_t>(whole.size(), 20'000));
    bytes[random() % bytes.size()] ^= static_cast<char>(1 << (random() % 8));
    auto reader = RecordingReader::over(bytes);
    if (!reader.ok()) continue;
    for (auto step = reader->next(); step.ok() && step->has_value(); step = reader->next())
      EXPECT_TRUE(check_plan((*step)->plan, reader->run().bounds).ok());
  }
}

TEST_P(ReplayTest, AnExistingFileIsNotReplaced) {
  std::ofstream(path_) << "mine";
  const auto executor = load(1);
  EXPECT_EQ(RecordingExecutor::create(*executor, path_, run_).status().code(), StatusCode::kIo);
  EXPECT_EQ(std::filesystem::file_size(path_), 4u);
}

INSTANTIATE_TEST_SUITE_P(Tiny, ReplayTest, testing::Values("llama-gqa-llama3rope", "gemma3"));

}  // namespace
}  // namespace quire
