// What generation_config.json says of sampling and of the tokens that end a text.
//
// Keys that quire does not obey are named in a remark unless they hold what changes nothing. Meanings and defaults:
// transformers' GenerationConfig. For .cc files of formats/ only (see hf_json.h).
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "formats/hf_json.h"
#include "formats/hparams.h"

namespace quire {

// Adds to `ids` what "eos_token_id" of the object names: one number or a list. Sorted, none twice.
Status add_end_tokens(const HfJson& object, std::vector<int32_t>* ids);

// Sets the defaults of sampling, and adds the end tokens.
Status read_hf_generation_config(const HfJson& generation, Hparams* hparams, std::vector<std::string>* remarks);

}  // namespace quire
