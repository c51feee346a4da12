// str(), repr() and HTML escaping of values, as Python prints them.
#pragma once

#include "jinja/runtime.h"

namespace quire::jinja {

// Appends str(value): strings as they are, nothing for undefined, repr() for the rest.
Status append_str(Runtime& runtime, const Value& value, TextBuilder& out);
// `origin` is the author of what has none of its own, such as a number inside a list of the caller.
Status append_repr(Runtime& runtime, const Value& value, Origin origin, TextBuilder& out);
// Escapes & < > ' " unless the value is markup already.
Status append_escaped(Runtime& runtime, const Value& value, TextBuilder& out);

// str(value) as a plain string.
Result<Value> to_string(Runtime& runtime, const Value& value);
// The value itself if it is a string, be it markup; else str(value).
Result<Value> soft_string(Runtime& runtime, const Value& value);

}  // namespace quire::jinja
