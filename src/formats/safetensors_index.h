// model.safetensors.index.json: which shard holds which tensor.
#pragma once

#include <map>
#include <string>

#include "base/status.h"

namespace quire {

// Tensor name to file name. File names are plain names ending in ".safetensors"; anything that could leave the
// directory is an error.
using SafetensorsIndex = std::map<std::string, std::string>;

Result<SafetensorsIndex> parse_safetensors_index(const std::string& text, const std::string& where);

}  // namespace quire
