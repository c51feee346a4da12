// The methods of strings and dicts. Lists and numbers have none: those of Python that change a list are forbidden to
// templates, and no template uses the others.
#pragma once

#include <string_view>

#include "jinja/runtime.h"

namespace quire::jinja {

// Null where values of this kind have no such method here.
const Builtin* find_method(Kind kind, std::string_view name);
// Whether any kind has it.
bool is_method(std::string_view name);

}  // namespace quire::jinja
