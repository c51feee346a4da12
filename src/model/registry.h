// From what a checkpoint says to what the forward pass needs: one function of the hyper-parameters and the family's row
// (formats/families.h), for all families.
#pragma once

#include "base/status.h"
#include "formats/hparams.h"
#include "model/config.h"

namespace quire {

// Fails on families and shapes that the forward pass does not know.
Result<ModelConfig> configure_model(const Hparams& hparams);

}  // namespace quire
