// Runs what the scheduler planned. The engine's core knows a model only through this: one process, several ranks, or a
// chain of hashes that reveals every wrong page (tests/engine/hash_chain_executor.h).
#pragma once

#include <cstdint>

#include "base/status.h"
#include "engine/step_sampling.h"
#include "sched/step_plan.h"

namespace quire {

class Executor {
 public:
  virtual ~Executor() = default;

  virtual int64_t vocab_size() const = 0;

  // Moves the plan's pages, computes its rows, and samples by sequence: a draft's row counts only if the draft was right.
  // On failure nothing of the step counts. `sampling.rows` match `plan.rows`.
  virtual Result<StepResult> run(const StepPlan& plan, const StepSampling& sampling) = 0;
};

}  // namespace quire
