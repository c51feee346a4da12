// Source text to a program that can be run: parsing, then the meaning of every name.
#pragma once

#include <string_view>

#include "base/status.h"
#include "jinja/ast.h"

namespace quire::jinja {

// Fails with line and construct where the template uses what quire does not know. A filter or test that does not
// exist is allowed below `if` alone, where it may never be reached, and fails there when it is.
Result<Program> compile(std::string_view source);

}  // namespace quire::jinja
