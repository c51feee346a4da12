// What every Hparams must satisfy, whichever file it came from.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "formats/hparams.h"

namespace quire {

// Far above any model; readers hold to it before they size anything by the number of layers.
inline constexpr int64_t kMaxLayers = 4096;
inline constexpr int64_t kMaxReadHeadDim = 512;  // what attention takes (device/device_sizes.h)

// `where` names the file in messages.
Status check_hparams(const Hparams& hparams, const std::string& where);

}  // namespace quire
