// The memory a model will take, computed from its headers alone, before anything is allocated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/model_options.h"
#include "formats/checkpoint.h"

namespace quire {

struct MemoryPlan {
  struct WeightLine {
    std::string dtype;   // as stored: "Q4_K"
    std::string kernel;  // that multiplies it: "avx512 int4 x int8"; empty: none does
    int64_t tensors = 0;
    int64_t file_bytes = 0;
    int64_t packed_bytes = 0;  // in the device's layout; 0 where the mapped file is read in place
  };
  struct KvGroup {
    std::string name;  // "global" or "window 512"
    int64_t layers = 0;
    int64_t bytes_per_token = 0;      // all layers of the group, K and V
    int64_t tokens_per_sequence = 0;  // held at most by one sequence: the context, or window and a step
    int64_t bytes = 0;                // for all planned sequences
  };

  std::vector<WeightLine> weights;
  std::vector<KvGroup> kv_groups;
  int64_t context = 0;  // tokens a sequence
  int64_t sequences = 1;
  int64_t packed_weight_bytes = 0;
  int64_t kv_bytes = 0;
  int64_t workspace_bytes = 0;  // buffers of a step, rows of logits, and the program itself
  int64_t tokenizer_bytes = 0;
  int64_t total_bytes = 0;  // anonymous memory: all of the above

  int64_t available_bytes = 0;  // MemAvailable, or what the cgroup leaves, whichever is less
};

Result<MemoryPlan> plan_memory(const Checkpoint& checkpoint, const ModelOptions& options, int64_t sequences);

}  // namespace quire
