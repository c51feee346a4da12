#include "sched/step_plan.h"

namespace quire {

int64_t attention_over_layers(std::span<const KvGroupConfig> groups, int64_t first, int64_t rows) {
  int64_t sum = 0;
  for (const KvGroupConfig& group : groups) sum += group.layers * attention_tokens(first, rows, group.window);
  return sum;
}

// Keeps the memory: a plan is made for every step.
void StepPlan::clear() {
  rows.clear();
  tokens.clear();
  page_tables.clear();
  copies.clear();
  admitted.clear();
  preempted.clear();
  shape = {};
  wake_at_ns = kNever;
}

}  // namespace quire
