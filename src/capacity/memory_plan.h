// The memory a model will take, computed from its headers alone, before anything is allocated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "capacity/opened_model.h"
#include "model/weights.h"
#include "model/workspace.h"

namespace quire {

struct MemoryPlan {
  int64_t context = 0;         // tokens that a sequence may reach
  std::vector<int64_t> pages;  // of each KV group
  int64_t weight_bytes = 0;    // in the device's layout; what is read in the mapped file does not count
  int64_t kv_bytes = 0;
  int64_t workspace_bytes = 0;  // buffers of a step, rows of logits, and the program itself
  int64_t tokenizer_bytes = 0;
  int64_t request_bytes = 0;  // that requests may hold beside all that: their texts, answers, queues
  int64_t budget_bytes = 0;   // a limit that was given, or what the machine and its control groups leave
  // Anonymous memory, without what requests hold.
  int64_t total_bytes() const { return weight_bytes + kv_bytes + workspace_bytes + tokenizer_bytes; }
  bool fits() const { return total_bytes() <= budget_bytes; }
};

// For so many sequences of the whole context. A context that the options leave open shrinks until K and V take at most half
// of what else is left: the other half is for everybody else. One that they give may be more than fits.
MemoryPlan plan_sequences(const ModelHeaders& model, int64_t sequences);

struct PoolOptions {
  int64_t max_step_rows = 0;
  int64_t max_seqs = 0;
  int64_t kv_memory_bytes = 0;      // of the page pool; 0: by the rule of plan_pool()
  int64_t memory_budget_bytes = 0;  // for everything; 0: what is available
};

// For a server's pool of pages: max_seqs x min(context, 4096) tokens and one full context, at most half of what weights and
// workspace leave of the budget. Requests get a share of what is left then. A group's share of the pool is fixed, in
// proportion to what sequences need of it. Fails, with the numbers, where one sequence of the context has no room.
Result<MemoryPlan> plan_pool(const ModelHeaders& model, const PoolOptions& options);

// What a model's steps take: workspace, rows of logits, and the program itself.
int64_t step_bytes(const ModelHeaders& model, const LinearReaders& readers, const WorkspaceLimits& limits,
                   int64_t logit_rows);
int64_t kv_bytes(const ModelHeaders& model, const std::vector<int64_t>& pages);

// The weights by type, and K and V by group, for people.
struct WeightLine {
  std::string dtype;   // as stored: "Q4_K"
  std::string kernel;  // that multiplies it: "avx512 int4 x int8"; empty: none does
  int64_t tensors = 0;
  int64_t file_bytes = 0;
  int64_t packed_bytes = 0;  // in the device's layout; 0 where the mapped file is read in place
};
std::vector<WeightLine> weight_lines(const ModelHeaders& model);

struct KvLine {
  std::string name;  // "global" or "window 512"
  int64_t layers = 0;
  int64_t bytes_per_token = 0;      // all layers of the group, K and V
  int64_t tokens_per_sequence = 0;  // held at most by one sequence: the context, or window and a step
  int64_t bytes = 0;                // of all its pages
};
std::vector<KvLine> kv_lines(const ModelHeaders& model, const MemoryPlan& plan);

}  // namespace quire
