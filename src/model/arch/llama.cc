// Llama: RMSNorm before attention and MLP, SiLU-gated MLP, rotary embedding on all of a head; biases where the
// checkpoint has them.
#include "model/arch/families.h"

namespace quire::arch {

Result<ModelConfig> llama(const Hparams& hparams) { return base_config(hparams); }

}  // namespace quire::arch
