// Text to syntax tree. A construct that is not Jinja, or that quire does not know, is an error with line and name.
#pragma once

#include <string_view>

#include "base/status.h"
#include "jinja/ast.h"

namespace quire::jinja {

// The tree without scopes; compile() of compiler.h adds them.
Result<Program> parse(std::string_view source);

}  // namespace quire::jinja
