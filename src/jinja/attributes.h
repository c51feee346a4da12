// value.name, value[key] and value[start:stop:step], as jinja2's sandbox with immutable data allows them.
#pragma once

#include <span>
#include <string_view>

#include "jinja/runtime.h"

namespace quire::jinja {

// value.name: attributes and methods first, then the key. What does not exist is an undefined value, not an error.
Result<Value> get_attribute(Runtime& runtime, const Value& object, std::string_view name);
// value[key]: the key first, then the attribute of that name.
Result<Value> get_item(Runtime& runtime, const Value& object, const Value& key);
// Bounds that are absent are kMissing or kNone.
Result<Value> get_slice(Runtime& runtime, const Value& object, const Value& start, const Value& stop,
                        const Value& step);
// Only what Python's getattr() finds.
Result<std::optional<Value>> find_attribute(Runtime& runtime, const Value& object, std::string_view name);

// A path such as "function.name" or 0 applied with get_item, what filters mean by attribute. A part that is not
// there becomes `fallback`, unless that is kMissing or kNone.
Result<Value> get_path(Runtime& runtime, const Value& item, const Value& path, const Value& fallback = Value());

const Builtin* find_builtin(std::span<const Builtin> table, std::string_view name);

std::span<const Builtin> string_methods();
std::span<const Builtin> list_methods();
std::span<const Builtin> tuple_methods();
std::span<const Builtin> dict_methods();
std::span<const Builtin> number_methods();

// Methods that Python has and these tables lack, other than those that the sandbox forbids.
bool is_unsupported_method(std::string_view name);

}  // namespace quire::jinja
