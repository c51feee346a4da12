// What the KV cache's type adds to a model's divergence.
#pragma once

#include "base/status.h"
#include "capacity/model_options.h"
#include "eval/statistics.h"

namespace quire {

struct KvDivergence {
  double kl = 0;        // mean KL(with f32 KV || with the KV type asked for), nats a token
  double kl_upper = 0;  // where it lies below with 97.5 % confidence
  int64_t tokens = 0;   // that it was measured on
};

// With f32 activations, over as many tokens of the shipped evaluation text as `seconds` allow. Loads the weights once for both sides, and frees
// them again. Nothing to measure where KV is f32.
Result<KvDivergence> measure_kv_divergence(const ModelOptions& options, double seconds);

}  // namespace quire
