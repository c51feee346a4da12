// The families of model/registry.cc, and what they share.
#pragma once

#include "base/status.h"
#include "formats/hparams.h"
#include "model/config.h"

namespace quire::arch {

// Everything Hparams states that means the same in every family. Layers that slide share one KV group, the others
// another; a model with one kind of layer has one group.
ModelConfig base_config(const Hparams& hparams);

Result<ModelConfig> llama(const Hparams& hparams);   // Llama 2 and 3, Mistral, SmolLM2, TinyLlama
Result<ModelConfig> qwen2(const Hparams& hparams);   // Qwen2, Qwen2.5
Result<ModelConfig> gemma3(const Hparams& hparams);  // Gemma 3, text

}  // namespace quire::arch
