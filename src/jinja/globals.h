// Functions every template can call: range, dict, namespace, and transformers' raise_exception and strftime_now.
#pragma once

#include <optional>
#include <string_view>

#include "jinja/runtime.h"

namespace quire::jinja {

std::optional<Value> find_global(Heap& heap, std::string_view name);

}  // namespace quire::jinja
