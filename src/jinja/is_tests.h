// The tests of jinja2 by name, what stands behind `is`.
#pragma once

#include <string_view>

#include "jinja/runtime.h"

namespace quire::jinja {

const Builtin* find_test(std::string_view name);

}  // namespace quire::jinja
