// Which keys of config.json have an effect: those that quire reads for a family, and those that change nothing when a
// model runs (training, caches, library versions). Any other key is named in a remark, so that nothing a checkpoint
// says is passed over without a word. For .cc files of formats/ only (see hf_json.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/hf_json.h"

namespace quire {

// `outer` is the whole of config.json, `text` the part that describes the language model; they may be the same.
void note_unknown_keys(const HfJson& outer, const HfJson& text, std::string_view model_type,
                       std::vector<std::string>* remarks);

}  // namespace quire
