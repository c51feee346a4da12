// The steps of a run in a file: what each was to compute and what came of it, so that `quire replay` can find the first step
// that comes out otherwise. A plan and its sampling decide a step, so no clock, client or scheduler is needed again.
//
// Format: "quire steps 1\n", then frames of a 64-bit length and so many bytes (base/byte_stream.h): the run first, then a
// frame a step. Bounded by kMostRecordedBytes. A file that ends amid a frame was cut off there; the steps before count.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "capacity/model_options.h"
#include "engine/executor.h"
#include "model/model.h"
#include "sched/step_plan.h"

namespace quire {

inline constexpr uint64_t kMostRecordedBytes = uint64_t{256} << 20;

// What the steps ran on.
struct RecordedRun {
  ModelOptions
      model;  // threads, path of packed weights and this recording's own are left out: no result depends on them
  PlanBounds bounds;
  int64_t logit_rows = 0;  // of the Runner

  std::string bytes() const;
  static Result<RecordedRun> parse(std::string_view bytes);
};

struct RecordedStep {
  StepPlan plan;
  StepSampling sampling;
  std::vector<std::vector<int32_t>> tokens;  // of each sampled sequence, in the plan's order
  uint64_t logits_hash = 0;

  std::string bytes() const;
  // Checked against `bounds`: it can be run.
  static Result<RecordedStep> parse(std::string_view bytes, const PlanBounds& bounds);
};

// The tokens of a result in the order of RecordedStep::tokens.
std::vector<std::vector<int32_t>> tokens_of(const StepResult& result);

// What a model with so many pages and rows is recorded as.
RecordedRun recorded_run(const ModelOptions& options, const Model& model, const ModelLimits& limits,
                         int64_t logit_rows);

// Runs on another executor and writes what it did. Thread: the engine's. A disk that is full ends the recording, never the
// run: why_stopped() says so.
class RecordingExecutor final : public Executor {
 public:
  // Fails when the file exists or cannot be made. `inner` outlives this.
  static Result<std::unique_ptr<RecordingExecutor>> create(Executor& inner, const std::string& path,
                                                           const RecordedRun& run);
  ~RecordingExecutor() override;

  int64_t vocab_size() const override { return inner_.vocab_size(); }
  // A step that fails is not recorded: nothing of it counts.
  Result<StepResult> run(const StepPlan& plan, const StepSampling& sampling) override;

  const std::string& why_stopped() const { return why_stopped_; }  // empty: it goes on

 private:
  RecordingExecutor(Executor& inner, std::string path, std::FILE* file)
      : inner_(inner), path_(std::move(path)), file_(file) {}
  void write_frame(std::string_view bytes);
  void stop(const std::string& why);

  Executor& inner_;
  std::string path_;
  std::FILE* file_;  // null: stopped
  uint64_t written_ = 0;
  std::string why_stopped_;
};

// Reads a recording step by step.
class RecordingReader {
 public:
  static Result<RecordingReader> open(const std::string& path);
  // From bytes in memory; they outlive the reader.
  static Result<RecordingReader> over(std::string_view bytes);

  const RecordedRun& run() const { return run_; }
  // The next step; none at the end, also where the file was cut off (cut_off()).
  Result<std::optional<RecordedStep>> next();
  bool cut_off() const { return cut_off_; }

 private:
  std::optional<std::string_view> frame();

  std::string owned_;
  std::string_view rest_;
  RecordedRun run_;
  bool cut_off_ = false;
};

}  // namespace quire
