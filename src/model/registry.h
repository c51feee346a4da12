// Which model families there are. A family is a function from Hparams to ModelConfig in its own file under arch/ and
// one row of the table in registry.cc.
#pragma once

#include "base/status.h"
#include "formats/hparams.h"
#include "model/config.h"

namespace quire {

Result<ModelConfig> configure_model(const Hparams& hparams);

}  // namespace quire
