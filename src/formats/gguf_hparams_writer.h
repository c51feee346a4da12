// GGUF metadata from hyper-parameters, for a source that is not GGUF itself. Keys: ggml's docs/gguf.md and llama.cpp's
// loader. The inverse of formats/gguf_hparams.h.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "formats/checkpoint.h"

namespace quire {

using GgufKeyValues = std::vector<std::pair<std::string, MetaValue>>;

// general.* and the architecture's keys, without tokenizer keys and file type. `where` names the source in messages. Fails
// where GGUF has no key for what the model does.
Result<GgufKeyValues> gguf_hparam_entries(const Hparams& hparams, const std::string& where);

}  // namespace quire
