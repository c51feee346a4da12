#include "engine/replay.h"

#include <utility>

#include "capacity/loaded_model.h"
#include "engine/runner.h"
#include "formats/checkpoint.h"

namespace quire {
namespace {

// A Runner with the checkpoint that its model reads rows from.
class RecordedModel final : public Executor {
 public:
  RecordedModel(std::unique_ptr<Checkpoint> checkpoint, std::unique_ptr<Model> model, int64_t logit_rows)
      : checkpoint_(std::move(checkpoint)), runner_(std::move(model), logit_rows) {}

  int64_t vocab_size() const override { return runner_.vocab_size(); }
  Result<StepResult> run(const StepPlan& plan, const StepSampling& sampling) override {
    return runner_.run(plan, sampling);
  }

 private:
  std::unique_ptr<Checkpoint> checkpoint_;
  Runner runner_;
};

std::optional<ReplayDifference> compare(const RecordedStep& step, const StepResult& result) {
  const std::vector<std::vector<int32_t>> replayed = tokens_of(result);
  size_t next = 0;
  for (const PlanRow& row : step.plan.rows) {
    for (int32_t j = 0; j < row.samples; ++j, ++next) {
      if (next < step.tokens.size() && replayed[next] == step.tokens[next]) continue;
      return ReplayDifference{.step = 0,
                              .id = row.id + j,
                              .recorded = next < step.tokens.size() ? step.tokens[next] : std::vector<int32_t>(),
                              .replayed = replayed[next]};
    }
  }
  if (result.logits_hash != step.logits_hash) return ReplayDifference{};
  return std::nullopt;
}

}  // namespace

Result<ReplayReport> replay(RecordingReader& reader, Executor& executor) {
  ReplayReport report;
  while (true) {
    QUIRE_ASSIGN_OR_RETURN(const std::optional<RecordedStep> step, reader.next());
    if (!step.has_value()) break;
    QUIRE_ASSIGN_OR_RETURN(const StepResult result, executor.run(step->plan, step->sampling));
    report.first = compare(*step, result);
    if (report.first.has_value()) {
      report.first->step = report.steps;
      break;
    }
    for (const std::vector<int32_t>& tokens : step->tokens) report.tokens += static_cast<int64_t>(tokens.size());
    ++report.steps;
  }
  report.cut_off = reader.cut_off();
  return report;
}

Result<std::unique_ptr<Executor>> load_recorded(const RecordedRun& run, int threads,
                                                const std::function<void(double)>& progress) {
  ModelOptions options = run.model;
  options.threads = threads;
  QUIRE_ASSIGN_OR_RETURN(OpenedModel opened, open_model(options));
  const ModelConfig& config = opened.config;
  if (config.vocab_size != run.bounds.vocab_size || config.kv_groups.size() != run.bounds.groups.size()) {
    return invalid_argument(options.model_path +
                            ": is not the model that was recorded: its vocabulary or layers differ");
  }
  ModelLimits limits;
  limits.workspace = {.max_rows = run.bounds.max_rows, .max_context = run.bounds.context};
  for (const PlanBounds::Group& group : run.bounds.groups) limits.kv_pages.push_back(group.pages);
  limits.touch_kv = false;
  QUIRE_ASSIGN_OR_RETURN(auto loaded, load_model(opened, std::move(limits), progress));
  return std::unique_ptr<Executor>(
      std::make_unique<RecordedModel>(std::move(opened.checkpoint), std::move(loaded.model), run.logit_rows));
}

}  // namespace quire
