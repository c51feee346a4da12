// Runs what the scheduler planned. The engine's core knows a model only through this, so that it can be tested on one
// whose outputs reveal every wrong page.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/status.h"
#include "sched/step_plan.h"

namespace quire {

class Executor {
 public:
  virtual ~Executor() = default;

  virtual int64_t vocab_size() const = 0;
  // Most rows of logits that may be asked for at a time.
  virtual int64_t max_logit_rows() const = 0;

  // Does the plan's page copies, then computes its rows. On failure nothing of the step counts.
  virtual Status run(const StepPlan& plan) = 0;
  // Logits of rows of the last run, counted over the whole plan: [rows.size()][vocab_size]. Valid until the next call.
  virtual std::span<const float> logits(std::span<const int32_t> rows) = 0;
  virtual float log_sum_exp(std::span<const float> logits) = 0;
  // body(begin, end) over [0, count), on however many threads there are.
  virtual void parallel(int64_t count, const std::function<void(int64_t, int64_t)>& body) = 0;
};

}  // namespace quire
