// Gemma 3: embeddings scaled by sqrt(hidden), a norm on each head of q and k, norms on the outputs of attention and
// MLP, GELU-gated MLP; sliding-window layers with their own rope base between the global ones.
#include <cmath>

#include "model/arch/families.h"

namespace quire::arch {

Result<ModelConfig> gemma3(const Hparams& hparams) {
  ModelConfig config = base_config(hparams);
  config.embedding_scale = std::sqrt(static_cast<float>(hparams.hidden));
  config.post_norms = true;
  return config;
}

}  // namespace quire::arch
