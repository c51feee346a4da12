// The Executor over a Model: StepPlan -> StepInput -> logits -> tokens.
//
// Owns the model and what it knows of sequences. Thread: the engine's, which is worker 0 of the compute pool.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/executor.h"
#include "engine/step_sampler.h"
#include "model/model.h"
#include "model/workspace.h"

namespace quire {

class Runner final : public Executor, private LogitSource {
 public:
  // `logit_rows`: most rows of logits at a time.
  Runner(std::unique_ptr<Model> model, int64_t logit_rows);

  int64_t vocab_size() const override { return model_->config().vocab_size; }
  // Fails on plans that save or load pages, as no page store is attached, and as Model::forward does.
  Result<StepResult> run(const StepPlan& plan, const StepSampling& sampling) override;

  const Model& model() const { return *model_; }

 private:
  int64_t max_logit_rows() const override { return logit_rows_; }
  Result<std::span<const float>> logits(std::span<const int32_t> rows) override;
  float log_sum_exp(std::span<const float> logits) override { return model_->log_sum_exp(logits); }
  void parallel(int64_t count, const std::function<void(int64_t, int64_t)>& body) override;

  std::unique_ptr<Model> model_;
  int64_t logit_rows_;
  std::vector<float> logits_;
  StepSampler sampler_;
};

}  // namespace quire
