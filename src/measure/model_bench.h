// How fast a whole model runs: prefill, decode after some depth, and decode of a batch, without scheduler and sampling.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "capacity/model_options.h"

namespace quire {

struct ModelWork {
  enum class Kind { kPrefill, kDecode };
  Kind kind = Kind::kPrefill;
  int64_t tokens = 512;  // prefill: of the prompt; decode: steps that are timed
  int64_t depth = 0;     // decode: tokens of each sequence before
  int64_t sequences = 1;
};

std::string work_name(const ModelWork& work);

struct ModelSpeed {
  ModelWork work;
  std::vector<double> tokens_per_s = {};  // one a repeat
  double probe_gbps = 0;                  // decode: memory read by a plain loop beside it, mean of before and after
  double read_gbps = 0;                   // decode: packed weights read by the median repeat
  double kv_bytes = 0;                    // of pages read by attention, for each token
  double gops = 0;                        // 2 operations for each weight and row of the median repeat
};

// Loads the model once and does each work `repeats` times, in turn. `on_speed` hears each when its last repeat is done.
Status bench_model(const ModelOptions& options, const std::vector<ModelWork>& works, int repeats,
                   const std::function<void(const ModelSpeed&)>& on_speed);

}  // namespace quire
