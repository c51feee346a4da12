// Which safetensors files of a Hugging Face directory hold the model.
//
// As transformers: model.safetensors, else the files of model.safetensors.index.json. Else, because quantizers name
// their files otherwise and indices get lost: the only other safetensors file, or one complete set of parts
// NAME-0000i-of-0000n.safetensors. For .cc files of formats/ only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "formats/safetensors_file.h"

namespace quire {

constexpr std::string_view kWeightsIndexFile = "model.safetensors.index.json";

// In the order of their names. Fails with the file at fault; a set that lacks parts is named by the first of them.
Result<std::vector<SafetensorsFile>> open_hf_weights(const std::string& directory, std::vector<std::string>* remarks);

// Whether the directory has files of which open_hf_weights() would take one.
bool has_hf_weights(const std::string& directory);

}  // namespace quire
