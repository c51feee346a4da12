// Wording that error messages share. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace quire {

// `text` in double quotes, safe to print: control and non-ASCII bytes are escaped and long names are cut with "...".
std::string quote(std::string_view text);

// "[896, 151936]"
std::string shape_text(std::span<const int64_t> shape);

}  // namespace quire
