// str() and repr() of values, as Python prints them.
#pragma once

#include "jinja/runtime.h"

namespace quire::jinja {

// Appends str(value): strings as they are, nothing for undefined, repr() for the rest.
Status append_str(Runtime& runtime, const Value& value, TextBuilder& out);
// `origin` is the author of what has none of its own, such as a number inside a list of the caller.
Status append_repr(Runtime& runtime, const Value& value, Origin origin, TextBuilder& out);
// str(value) as a string value.
Result<Value> to_string(Runtime& runtime, const Value& value);

// Fails for a string that the filter safe made. jinja2 escapes what is joined to such a string by "+", "%" or a method,
// which quire does not; to print it, to join it by "~" and to hand it to a filter are the same in both.
Status refuse_safe(const Value& value);

}  // namespace quire::jinja
