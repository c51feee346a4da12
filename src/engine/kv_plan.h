// How many KV pages a server takes, and what its memory comes to.
//
// Default pool: max-seqs x min(context, 4096) tokens and one full context, at most half of what weights and workspace
// leave of the budget. Requests get a share of what is left then. A group's share is fixed at load, in proportion to what sequences need of it.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "device/device_sizes.h"
#include "engine/engine_options.h"
#include "formats/checkpoint.h"
#include "model/config.h"

namespace quire {

struct KvPlan {
  int64_t context = 0;
  std::vector<int64_t> pages;  // per group
  int64_t kv_bytes = 0;
  int64_t weight_bytes = 0;
  int64_t workspace_bytes = 0;  // with the rows of logits, and the program itself
  int64_t tokenizer_bytes = 0;
  int64_t budget_bytes = 0;
  int64_t request_bytes = 0;  // that requests may hold beside all that: their texts, answers, queues
  int64_t total_bytes() const { return kv_bytes + weight_bytes + workspace_bytes + tokenizer_bytes; }
};

// Fails, with the numbers, when the budget has no room for one sequence of the context.
Result<KvPlan> plan_kv(const Checkpoint& checkpoint, const ModelConfig& config, const DeviceSizes& sizes,
                       const EngineOptions& options);

}  // namespace quire
