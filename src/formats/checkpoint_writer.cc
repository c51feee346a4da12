#include "formats/checkpoint_writer.h"

#include "formats/gguf_checkpoint_writer.h"
#include "formats/hf_checkpoint_writer.h"

namespace quire {

Result<std::unique_ptr<CheckpointWriter>> CheckpointWriter::create(const Checkpoint& source,
                                                                   const CheckpointTarget& target,
                                                                   const std::string& path) {
  return target.format == CheckpointTarget::Format::kGguf ? create_gguf_checkpoint(source, target, path)
                                                          : create_hf_checkpoint(source, target, path);
}

}  // namespace quire
