// Checkpoint over one GGUF file or the parts of a split one.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "formats/checkpoint.h"

namespace quire {

// `path` may name any part of a split model ("NAME-00002-of-00005.gguf"); the others are found beside it.
Result<std::unique_ptr<Checkpoint>> open_gguf_checkpoint(const std::string& path, CheckpointParts parts);

}  // namespace quire
