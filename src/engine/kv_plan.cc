#include "engine/kv_plan.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/machine.h"
#include "engine/model_setup.h"
#include "engine/runner.h"
#include "model/kv_store.h"
#include "model/weights.h"
#include "model/workspace.h"

namespace quire {
namespace {

constexpr int64_t kTypicalTokens = 4096;  // a sequence is expected to stay below
constexpr int64_t kLeastRequestBytes = 64 << 20;
constexpr int64_t kMostRequestBytes = 512 << 20;

struct Pool {
  std::vector<int64_t> pages;
  int64_t bytes = 0;
};

// `full` whole contexts and `typical` sequences of at most kTypicalTokens.
Pool pool_for(const ModelConfig& config, const DeviceSizes& sizes, int64_t context, int64_t full, int64_t typical) {
  Pool pool;
  for (const KvGroup& group : config.kv_groups) {
    pool.pages.push_back(full * pages_per_sequence(group, context) +
                         typical * pages_per_sequence(group, std::min(context, kTypicalTokens)));
    pool.bytes += pool.pages.back() * KvStore::page_bytes(config, group, sizes);
  }
  return pool;
}

int64_t workspace_bytes(const Checkpoint& checkpoint, const ModelConfig& config, const DeviceSizes& sizes,
                        const EngineOptions& options, int64_t context) {
  const WorkspaceLimits limits = {.max_rows = options.scheduler.max_step_rows, .max_context = context};
  return Workspace::bytes(config, linear_readers(config, checkpoint, options.model.head), limits, sizes) +
         Runner::logits_bytes(config.vocab_size, std::max(options.scheduler.max_seqs, kScoreRows)) + kProgramBytes;
}

std::string mib(int64_t bytes) { return std::to_string((bytes + (1 << 20) - 1) >> 20) + " MiB"; }

}  // namespace

Result<KvPlan> plan_kv(const Checkpoint& checkpoint, const ModelConfig& config, const DeviceSizes& sizes,
                       const EngineOptions& options) {
  KvPlan plan;
  if (options.model.context < 0 || options.model.context > config.context_length) {
    return out_of_range("--context " + std::to_string(options.model.context) + ": this model was trained for at most " +
                        std::to_string(config.context_length) + " tokens");
  }
  QUIRE_RETURN_IF_ERROR(check_head(config, checkpoint, options.model.head));
  plan.budget_bytes = options.memory_budget_bytes > 0 ? options.memory_budget_bytes : available_memory_bytes();
  plan.weight_bytes = weight_bytes(config, checkpoint, options.model.head, sizes);
  plan.tokenizer_bytes = tokenizer_bytes(config.vocab_size);
  plan.context = options.model.context > 0 ? options.model.context : config.context_length;
  const auto left = [&] { return plan.budget_bytes - plan.weight_bytes - plan.tokenizer_bytes - plan.workspace_bytes; };
  const auto limit = [&] { return options.kv_memory_bytes > 0 ? options.kv_memory_bytes : left() / 2; };
  for (;; plan.context = std::max(kPageTokens, plan.context * 7 / 8 / kPageTokens * kPageTokens)) {
    plan.workspace_bytes = workspace_bytes(checkpoint, config, sizes, options, plan.context);
    if (options.model.context > 0 || plan.context <= kPageTokens) break;
    if (pool_for(config, sizes, plan.context, 1, 0).bytes <= limit()) break;
  }
  const Pool least = pool_for(config, sizes, plan.context, 1, 0);
  const Pool wanted = pool_for(config, sizes, plan.context, 1, options.scheduler.max_seqs);
  // A context that was asked for may take more than the default half, but not more than there is.
  const int64_t allowed =
      options.kv_memory_bytes > 0 ? options.kv_memory_bytes : std::min(std::max(left() / 2, least.bytes), left());
  if (least.bytes > allowed || allowed > left()) {
    return resource_exhausted("the KV cache of one sequence of " + std::to_string(plan.context) + " tokens takes " +
                              mib(least.bytes) + "; " + mib(std::max<int64_t>(std::min(allowed, left()), 0)) +
                              " are left beside weights (" + mib(plan.weight_bytes) + ") and workspace (" +
                              mib(plan.workspace_bytes) + "): give a smaller --context or model, or more memory");
  }
  const double share = static_cast<double>(options.kv_memory_bytes > 0 ? allowed : std::min(allowed, wanted.bytes)) /
                       static_cast<double>(wanted.bytes);
  for (size_t g = 0; g < config.kv_groups.size(); ++g) {
    plan.pages.push_back(
        std::max(least.pages[g], static_cast<int64_t>(std::floor(static_cast<double>(wanted.pages[g]) * share))));
    plan.kv_bytes += plan.pages.back() * KvStore::page_bytes(config, config.kv_groups[g], sizes);
  }
  plan.request_bytes = std::clamp((plan.budget_bytes - plan.total_bytes()) / 4, kLeastRequestBytes, kMostRequestBytes);
  return plan;
}

}  // namespace quire
