// value.name, value[key] and value[start:stop:step], as jinja2's sandbox with immutable data allows them.
#pragma once

#include <string_view>

#include "jinja/runtime.h"

namespace quire::jinja {

// value.name: attributes and methods first, then the key. What does not exist is an undefined value, not an error.
Result<Value> get_attribute(Runtime& runtime, const Value& object, std::string_view name);
// value[key]: the key first, then the attribute of that name.
Result<Value> get_item(Runtime& runtime, const Value& object, const Value& key);

struct SliceBounds {
  Value start, stop, step;  // kMissing or none where absent
};
Result<Value> get_slice(Runtime& runtime, const Value& object, const SliceBounds& bounds);

// A path such as "function.name" or 0 applied with get_item, what filters mean by attribute. A part that is not
// there becomes `fallback`, unless that is kMissing or kNone.
Result<Value> get_path(Runtime& runtime, const Value& item, const Value& path, const Value& fallback = Value());

}  // namespace quire::jinja
