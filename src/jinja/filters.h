// The filters, by name, as transformers sets them up (tojson writes plain JSON): those of jinja2 that chat templates use.
#pragma once

#include <span>
#include <string_view>

#include "jinja/runtime.h"

namespace quire::jinja {

const Builtin* find_filter(std::string_view name);

std::span<const Builtin> text_filters();
std::span<const Builtin> number_filters();
std::span<const Builtin> sequence_filters();
std::span<const Builtin> selection_filters();

}  // namespace quire::jinja
