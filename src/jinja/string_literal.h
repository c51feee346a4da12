// String literals of a template, whose escapes are Python's.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace quire::jinja {

// Line breaks of every kind (\r\n, \r, \n) become "\n".
std::string normalize_line_breaks(std::string_view text);

// The value of what stands between the quotes. A message, without position, where an escape is malformed.
Result<std::string> unescape_string_literal(std::string_view literal);

}  // namespace quire::jinja
