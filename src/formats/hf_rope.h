// Rotary embedding parameters of config.json, in the older keys (rope_theta, rope_scaling) and the newer
// (rope_parameters). Which key wins where they contradict each other, and what is filled in: transformers 5.24,
// RotaryEmbeddingConfigMixin and Gemma3TextConfig. Where a key is set aside, a remark names both.
// For .cc files of formats/ only (see hf_json.h).
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "formats/hf_json.h"
#include "formats/hparams.h"

namespace quire {

struct HfRopeDefaults {
  double theta = 10000.0;
  bool has_local = false;  // sliding layers have a base of their own, and rope_parameters an object for each kind
  double local_theta = 10000.0;
};

// Sets rope, rope_local and rope_dim; head_dim must be set.
Status read_hf_rope(const HfJson& config, const HfRopeDefaults& defaults, Hparams* hparams,
                    std::vector<std::string>* remarks);

}  // namespace quire
