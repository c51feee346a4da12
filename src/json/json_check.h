// A first pass over JSON of unknown origin, in memory bounded by the text, before any tree is built from it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.h"

namespace quire {

struct JsonLimits {
  size_t depth = 32;
  size_t values = 1000000;  // objects, arrays and scalars together
};

// Whether `text` is one object, in valid UTF-8, within the limits and without duplicate keys. `where` names the file.
Status check_json_object(std::string_view text, const std::string& where, const JsonLimits& limits = {});

}  // namespace quire
