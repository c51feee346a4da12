// Whether the codes of a quantized checkpoint are numbers. Scales and zero points are checked as a checkpoint is opened;
// codes are too many to be read then, so whoever packs or decodes a whole tensor asks here first.
#pragma once

#include <string>

#include "base/status.h"
#include "device/device.h"
#include "formats/checkpoint.h"

namespace quire {

// Fails where an FP8 tensor holds a NaN, naming `where` (the checkpoint's path), tensor and row; other types have none.
// Reads the tensor from the file, on the device's threads.
Status check_codes(const TensorRef& tensor, Device& device, const std::string& where);

}  // namespace quire
