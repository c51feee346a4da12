// How a template's use of something that quire does not know is refused.
//
// jinja2 and Python have many more filters, tests, functions and methods than chat templates use. Each name below is one
// that a template would find there and does not find here: it is an error, never an undefined value or an empty text.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "jinja/value.h"

namespace quire::jinja {

// `what` names the sort of thing: "filter", "method", "tag".
Status not_known(std::string_view what, std::string_view name);

bool is_refused_global(std::string_view name);
bool is_refused_loop_attribute(std::string_view name);
bool is_refused_macro_attribute(std::string_view name);
// What jinja2 gives a macro beside its parameters.
bool is_refused_in_macro(std::string_view name);
// An attribute that Python's object of this kind has.
bool is_refused_attribute(Kind kind, std::string_view name);
// A method that some kind has in Python and no kind has here, so that a call of it can be refused unseen.
bool is_refused_method(std::string_view name);

}  // namespace quire::jinja
