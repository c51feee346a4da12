// A model as one GGUF file: metadata carried over from a GGUF source, or made from the hyper-parameters of a directory, and
// tensors in the order and with the additions that GGUF's readers expect. See formats/checkpoint_writer.h.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "formats/checkpoint_writer.h"

namespace quire {

Result<std::unique_ptr<CheckpointWriter>> create_gguf_checkpoint(const Checkpoint& source,
                                                                 const CheckpointTarget& target,
                                                                 const std::string& path);

}  // namespace quire
