// Qwen2: as Llama, with biases on q, k and v, which the checkpoint carries.
#include "model/arch/families.h"

namespace quire::arch {

Result<ModelConfig> qwen2(const Hparams& hparams) { return base_config(hparams); }

}  // namespace quire::arch
