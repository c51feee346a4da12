// What tells a checkpoint's files from others, and from what they were before somebody changed them.
#pragma once

#include <span>
#include <string>

#include "base/status.h"

namespace quire {

// A line for each: name, size and time of the last change.
Result<std::string> file_versions(std::span<const std::string> files);

}  // namespace quire
