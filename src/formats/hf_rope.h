// Rotary embedding parameters of config.json. Names and defaults: transformers' modeling_rope_utils.
// For .cc files of formats/ only (see hf_json.h).
#pragma once

#include "base/status.h"
#include "formats/hf_json.h"
#include "formats/hparams.h"

namespace quire {

struct HfRopeDefaults {
  double theta = 10000.0;
  bool has_local = false;  // sliding layers have a base of their own
  double local_theta = 10000.0;
};

// Sets rope, rope_local and rope_dim; head_dim must be set.
Status read_hf_rope(const HfJson& config, const HfRopeDefaults& defaults, Hparams* hparams);

}  // namespace quire
