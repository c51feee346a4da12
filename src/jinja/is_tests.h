// The tests, by name, which stand behind `is`: those of jinja2 that chat templates use.
#pragma once

#include <string_view>

#include "jinja/runtime.h"

namespace quire::jinja {

const Builtin* find_test(std::string_view name);

}  // namespace quire::jinja
