#include "capacity/memory_plan.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/machine.h"
#include "capacity/model_setup.h"
#include "model/kv_store.h"

namespace quire {
namespace {

constexpr int64_t kTypicalTokens = 4096;  // a sequence is expected to stay below
constexpr int64_t kLeastRequestBytes = 64 << 20;
constexpr int64_t kMostRequestBytes = 512 << 20;

// Pages of each group for `full` whole contexts and `typical` sequences of at most kTypicalTokens.
std::vector<int64_t> pages_for(const ModelConfig& config, int64_t context, int64_t full, int64_t typical) {
  std::vector<int64_t> pages;
  for (const KvGroup& group : config.kv_groups) {
    pages.push_back(full * pages_per_sequence(group, context) +
                    typical * pages_per_sequence(group, std::min(context, kTypicalTokens)));
  }
  return pages;
}

// Plans that differ in how much of the budget K and V may take.
class Planner {
 public:
  Planner(const ModelHeaders& model, int64_t max_step_rows, int64_t logit_rows, int64_t budget_bytes)
      : model_(model),
        readers_(linear_readers(model.config, *model.checkpoint, model.options.head)),
        max_step_rows_(max_step_rows),
        logit_rows_(logit_rows) {
    plan.budget_bytes = budget_bytes > 0 ? budget_bytes : available_memory_bytes();
    plan.weight_bytes = weight_bytes(model.config, *model.checkpoint, model.options.head, *model.sizes);
    plan.tokenizer_bytes = tokenizer_bytes(model.config.vocab_size);
  }

  int64_t left() const { return plan.budget_bytes - plan.weight_bytes - plan.tokenizer_bytes - plan.workspace_bytes; }
  std::vector<int64_t> pages(int64_t full, int64_t typical) const {
    return pages_for(model_.config, plan.context, full, typical);
  }
  int64_t pages_bytes(int64_t full, int64_t typical) const { return kv_bytes(model_, pages(full, typical)); }

  // The context of the options, or the longest of which so many sequences take at most `limit` bytes; 0: half of what is
  // left.
  void set_context(int64_t sequences, int64_t limit) {
    const int64_t asked = model_.options.context;
    plan.context = asked > 0 ? asked : model_.config.context_length;
    for (;; plan.context = std::max(kPageTokens, plan.context * 7 / 8 / kPageTokens * kPageTokens)) {
      const int64_t rows = max_step_rows_ > 0 ? max_step_rows_ : step_rows(plan.context);
      plan.workspace_bytes = step_bytes(model_, readers_, {.max_rows = rows, .max_context = plan.context}, logit_rows_);
      if (asked > 0 || plan.context <= kPageTokens) return;
      if (pages_bytes(sequences, 0) <= (limit > 0 ? limit : left() / 2)) return;
    }
  }

  MemoryPlan plan;

 private:
  const ModelHeaders& model_;
  const LinearReaders readers_;
  const int64_t max_step_rows_;  // 0: step_rows()
  const int64_t logit_rows_;
};

std::string mib(int64_t bytes) { return std::to_string((bytes + (1 << 20) - 1) >> 20) + " MiB"; }

}  // namespace

int64_t step_bytes(const ModelHeaders& model, const LinearReaders& readers, const WorkspaceLimits& limits,
                   int64_t logit_rows) {
  return Workspace::bytes(model.config, readers, limits, *model.sizes) +
         logits_bytes(model.config.vocab_size, logit_rows) + kProgramBytes;
}

int64_t kv_bytes(const ModelHeaders& model, const std::vector<int64_t>& pages) {
  int64_t bytes = 0;
  for (size_t g = 0; g < pages.size(); ++g)
    bytes += pages[g] * KvStore::page_bytes(model.config, model.config.kv_groups[g], *model.sizes);
  return bytes;
}

MemoryPlan plan_sequences(const ModelHeaders& model, int64_t sequences) {
  Planner planner(model, 0, kScoreRows, 0);
  planner.set_context(sequences, 0);
  planner.plan.pages = planner.pages(sequences, 0);
  planner.plan.kv_bytes = kv_bytes(model, planner.plan.pages);
  return std::move(planner.plan);
}

Result<MemoryPlan> plan_pool(const ModelHeaders& model, const PoolOptions& options) {
  Planner planner(model, options.max_step_rows, std::max(options.max_seqs, kScoreRows), options.memory_budget_bytes);
  MemoryPlan& plan = planner.plan;
  planner.set_context(1, options.kv_memory_bytes);
  const std::vector<int64_t> least = planner.pages(1, 0);
  const std::vector<int64_t> wanted = planner.pages(1, options.max_seqs);
  const int64_t least_bytes = kv_bytes(model, least);
  const int64_t wanted_bytes = kv_bytes(model, wanted);
  const int64_t left = planner.left();
  // A context that was asked for may take more than the default half, but not more than there is.
  const int64_t allowed =
      options.kv_memory_bytes > 0 ? options.kv_memory_bytes : std::min(std::max(left / 2, least_bytes), left);
  if (least_bytes > allowed || allowed > left) {
    return resource_exhausted("the KV cache of one sequence of " + std::to_string(plan.context) + " tokens takes " +
                              mib(least_bytes) + "; " + mib(std::max<int64_t>(std::min(allowed, left), 0)) +
                              " are left beside weights (" + mib(plan.weight_bytes) + ") and workspace (" +
                              mib(plan.workspace_bytes) + "): give a smaller --context or model, or more memory");
  }
  const double share = static_cast<double>(options.kv_memory_bytes > 0 ? allowed : std::min(allowed, wanted_bytes)) /
                       static_cast<double>(wanted_bytes);
  for (size_t g = 0; g < wanted.size(); ++g) {
    const auto pages = static_cast<int64_t>(std::floor(static_cast<double>(wanted[g]) * share));
    plan.pages.push_back(std::max(least[g], pages));
  }
  plan.kv_bytes = kv_bytes(model, plan.pages);
  plan.request_bytes = std::clamp((plan.budget_bytes - plan.total_bytes()) / 4, kLeastRequestBytes, kMostRequestBytes);
  return std::move(plan);
}

std::vector<WeightLine> weight_lines(const ModelHeaders& model) {
  std::map<std::pair<DType, std::string>, WeightLine> lines;
  const bool tied = model.config.tied_embeddings;
  for (const TensorRef& tensor : model.checkpoint->tensors()) {
    WeightLine& line = lines[{tensor.type().dtype, tensor.type_name()}];
    line.dtype = tensor.type_name();
    ++line.tensors;
    line.file_bytes += tensor.bytes;
    const bool in_place = tensor.name == "token_embd.weight" && !tied;
    const bool unused = tensor.name == "output.weight" && tied;
    if (in_place || unused || tensor.name == "rope_freqs.weight") continue;
    if (tensor.rank > 1) line.kernel = model.sizes->kernel_name(tensor.type());
    line.packed_bytes += tensor.rank == 1 ? tensor.columns() * static_cast<int64_t>(sizeof(float))
                                          : model.sizes->packed_bytes(tensor.type(), tensor.rows(), tensor.columns());
  }
  std::vector<WeightLine> list;
  for (auto& [type, line] : lines) list.push_back(std::move(line));
  return list;
}

std::vector<KvLine> kv_lines(const ModelHeaders& model, const MemoryPlan& plan) {
  std::vector<KvLine> lines;
  for (size_t g = 0; g < plan.pages.size(); ++g) {
    const KvGroup& group = model.config.kv_groups[g];
    const int64_t page_bytes = KvStore::page_bytes(model.config, group, *model.sizes);
    const int64_t held = pages_per_sequence(group, plan.context) * kPageTokens;
    lines.push_back({.name = group.name,
                     .layers = group.layers,
                     .bytes_per_token = page_bytes / kPageTokens,
                     .tokens_per_sequence = std::min(plan.context, held),
                     .bytes = plan.pages[g] * page_bytes});
  }
  return lines;
}

}  // namespace quire
