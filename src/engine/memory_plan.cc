#include "engine/memory_plan.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/machine.h"
#include "engine/model_setup.h"
#include "engine/runner.h"
#include "model/kv_store.h"
#include "model/registry.h"
#include "model/weights.h"
#include "model/workspace.h"

namespace quire {
namespace {

void count_weights(const Checkpoint& checkpoint, const ModelConfig& config, const DeviceSizes& sizes,
                   MemoryPlan& plan) {
  std::map<std::pair<DType, std::string>, MemoryPlan::WeightLine> lines;
  for (const TensorRef& tensor : checkpoint.tensors()) {
    MemoryPlan::WeightLine& line = lines[{tensor.type().dtype, tensor.type_name()}];
    line.dtype = tensor.type_name();
    ++line.tensors;
    line.file_bytes += tensor.bytes;
    const bool in_place = tensor.name == "token_embd.weight" && !config.tied_embeddings;
    const bool unused = tensor.name == "output.weight" && config.tied_embeddings;
    if (in_place || unused || tensor.name == "rope_freqs.weight") continue;
    if (tensor.rank > 1) line.kernel = sizes.kernel_name(tensor.type());
    line.packed_bytes += tensor.rank == 1 ? tensor.columns() * static_cast<int64_t>(sizeof(float))
                                          : sizes.packed_bytes(tensor.type(), tensor.rows(), tensor.columns());
  }
  for (auto& [type, line] : lines) plan.weights.push_back(std::move(line));
}

int64_t workspace_bytes(const Checkpoint& checkpoint, const ModelConfig& config, const DeviceSizes& sizes,
                        std::optional<DType> head, int64_t context) {
  const WorkspaceLimits limits = {.max_rows = step_rows(context), .max_context = context};
  return Workspace::bytes(config, linear_readers(config, checkpoint, head), limits, sizes) +
         Runner::logits_bytes(config.vocab_size, kScoreRows) + kProgramBytes;
}

}  // namespace

Result<MemoryPlan> plan_memory(const Checkpoint& checkpoint, const ModelOptions& options, int64_t sequences) {
  QUIRE_ASSIGN_OR_RETURN(const ModelConfig config, configure_model(checkpoint.hparams()));
  QUIRE_ASSIGN_OR_RETURN(const auto sizes, make_device_sizes(options));
  if (options.context < 0 || options.context > config.context_length) {
    return out_of_range("--context " + std::to_string(options.context) + ": this model was trained for at most " +
                        std::to_string(config.context_length) + " tokens");
  }
  QUIRE_RETURN_IF_ERROR(check_head(config, checkpoint, options.head));
  MemoryPlan plan;
  plan.sequences = sequences;
  plan.available_bytes = available_memory_bytes();
  count_weights(checkpoint, config, *sizes, plan);
  plan.packed_weight_bytes = weight_bytes(config, checkpoint, options.head, *sizes);
  plan.tokenizer_bytes = tokenizer_bytes(config.vocab_size);

  auto kv_bytes = [&](int64_t context) {
    int64_t bytes = 0;
    for (const KvGroup& group : config.kv_groups) {
      bytes += sequences * pages_per_sequence(group, context) * KvStore::page_bytes(config, group, *sizes);
    }
    return bytes;
  };
  plan.context = options.context;
  if (plan.context == 0) {
    // As many tokens as fit half of what the weights leave: the other half is for everybody else.
    plan.context = config.context_length;
    const int64_t left = plan.available_bytes - plan.packed_weight_bytes - plan.tokenizer_bytes;
    while (plan.context > kPageTokens &&
           kv_bytes(plan.context) + workspace_bytes(checkpoint, config, *sizes, options.head, plan.context) >
               left / 2) {
      plan.context = std::max(kPageTokens, plan.context * 7 / 8 / kPageTokens * kPageTokens);
    }
  }
  for (const KvGroup& group : config.kv_groups) {
    MemoryPlan::KvGroup line;
    line.name = group.name;
    line.layers = group.layers;
    const int64_t pages = pages_per_sequence(group, plan.context);
    const int64_t page_bytes = KvStore::page_bytes(config, group, *sizes);
    line.bytes_per_token = page_bytes / kPageTokens;
    line.tokens_per_sequence = std::min(plan.context, pages * kPageTokens);
    line.bytes = sequences * pages * page_bytes;
    plan.kv_groups.push_back(line);
  }
  plan.kv_bytes = kv_bytes(plan.context);
  plan.workspace_bytes = workspace_bytes(checkpoint, config, *sizes, options.head, plan.context);
  plan.total_bytes = plan.packed_weight_bytes + plan.kv_bytes + plan.workspace_bytes + plan.tokenizer_bytes;
  return plan;
}

}  // namespace quire
