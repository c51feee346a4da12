// config.json and generation_config.json of a directory that is being written: the source's own, or made from the
// hyper-parameters of a GGUF file. The inverse of formats/hf_config.h and formats/hf_rope.h.
#pragma once

#include <string>

#include "base/status.h"
#include "formats/checkpoint.h"
#include "tensor/dtype.h"

namespace quire {

// `dtype` of the tensors that are not quantized; `quantization` is a JSON object (formats/hf_quantization_config.h) or
// empty. Fails where no configuration class of transformers describes the model.
Result<std::string> hf_config_text(const Checkpoint& source, DType dtype, const std::string& quantization);

// End tokens and sampling defaults. Empty: the source is a directory without this file.
std::string hf_generation_config_text(const Checkpoint& source);

}  // namespace quire
