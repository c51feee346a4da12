// The quantization_config that programs demand of a directory in each quantized format. The inverse of
// formats/hf_quantization.h, which names the sources of the keys.
#pragma once

#include <span>
#include <string>

#include "formats/checkpoint_writer.h"

namespace quire {

// A JSON object. `skipped`: linears of the layers that stay plain ("model.layers.0.mlp.down_proj").
std::string quantization_config_text(const CheckpointTarget& target, std::span<const std::string> skipped);

}  // namespace quire
