// Checkpoint over a Hugging Face directory: config.json, safetensors (one file or shards) and tokenizer documents.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "formats/checkpoint.h"

namespace quire {

Result<std::unique_ptr<Checkpoint>> open_hf_checkpoint(const std::string& directory, CheckpointParts parts);

}  // namespace quire
