// A model as a Hugging Face directory: model.safetensors with plain values or with the codes of a quantized format, the
// configuration, the tokenizer's documents, and quire.json. See formats/checkpoint_writer.h.
//
// Everything is written to OUT.partial, which becomes OUT when it is whole.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "formats/checkpoint_writer.h"

namespace quire {

Result<std::unique_ptr<CheckpointWriter>> create_hf_checkpoint(const Checkpoint& source, const CheckpointTarget& target,
                                                               const std::string& directory);

}  // namespace quire
