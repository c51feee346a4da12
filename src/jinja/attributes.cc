#include "jinja/attributes.h"

#include <algorithm>

#include "jinja/characters.h"
#include "jinja/iteration.h"

namespace quire::jinja {
namespace {

bool one_of(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// What every Python object has; the sandbox hides it.
bool is_internal_name(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "__class__",         "__delattr__",   "__dict__",         "__dir__",     "__doc__",    "__eq__",
      "__format__",        "__ge__",        "__getattribute__", "__gt__",      "__hash__",   "__init__",
      "__init_subclass__", "__le__",        "__lt__",           "__module__",  "__ne__",     "__new__",
      "__reduce__",        "__reduce_ex__", "__repr__",         "__setattr__", "__sizeof__", "__str__",
      "__subclasshook__"};
  return one_of(kNames, name);
}

// Methods that change their object, which an immutable sandbox does not hand out.
bool is_forbidden(const Value& object, std::string_view name) {
  static constexpr std::string_view kOfList[] = {"append", "clear", "pop",    "reverse",
                                                 "insert", "sort",  "extend", "remove"};
  static constexpr std::string_view kOfDict[] = {"clear", "pop", "popitem", "setdefault", "update"};
  if (object.is(Kind::kList)) return one_of(kOfList, name);
  return object.is(Kind::kDict) && one_of(kOfDict, name);
}

Value no_attribute(Runtime& runtime, const Value& object, std::string_view name) {
  const std::string kind = object.is(Kind::kNone) ? "None" : quoted(std::string(type_name(object)) + " object");
  return runtime.undefined(kind + " has no attribute " + quoted(name));
}

Value unsafe(Runtime& runtime, const Value& object, std::string_view name) {
  return runtime.undefined("access to attribute " + quoted(name) + " of a " + quoted(type_name(object)) +
                           " object is unsafe");
}

std::span<const Builtin> methods_of(const Value& object) {
  switch (object.kind()) {
    case Kind::kString:
      return string_methods();
    case Kind::kList:
      return list_methods();
    case Kind::kTuple:
    case Kind::kRange:
      return tuple_methods();
    case Kind::kDict:
      return dict_methods();
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kFloat:
      return number_methods();
    default:
      return {};
  }
}

// Attributes that are plain data.
std::optional<Value> data_attribute(const Value& object, std::string_view name) {
  if (object.is_number()) {
    const bool integral = object.is_integral();
    const Value itself = integral ? Value::integer(object.as_int()) : object;
    if (name == "real") return itself;
    if (name == "imag") return integral ? Value::integer(0) : Value::floating(0);
    if (name == "numerator" && integral) return itself;
    if (name == "denominator" && integral) return Value::integer(1);
  }
  if (object.is(Kind::kRange)) {
    if (name == "start") return Value::integer(object.range().start());
    if (name == "stop") return Value::integer(object.range().stop());
    if (name == "step") return Value::integer(object.range().step());
  }
  if (object.is(Kind::kTuple) && object.sequence().is_group()) {
    if (name == "grouper") return object.sequence().items()[0];
    if (name == "list") return object.sequence().items()[1];
  }
  return std::nullopt;
}

// The key if the object has it; nothing if it does not or takes no such key.
Result<std::optional<Value>> find_key(Runtime& runtime, const Value& object, const Value& key) {
  if (object.is(Kind::kUndefined)) return invalid_argument(object.undefined_message());
  if (object.is(Kind::kDict)) {
    const Value* value = hashable(key) ? object.dict().find(key) : nullptr;
    return value != nullptr ? std::optional<Value>(*value) : std::nullopt;
  }
  const bool indexed = object.is_sequence() || object.is(Kind::kString) || object.is(Kind::kRange);
  if (!indexed || !key.is_integral()) return std::optional<Value>();
  QUIRE_ASSIGN_OR_RETURN(const int64_t size, length(runtime, object));
  Int index = key.as_int();
  if (index < 0) index += size;
  if (index < 0 || index >= size) return std::optional<Value>();
  const auto at = static_cast<size_t>(index);
  if (object.is_sequence()) return std::optional<Value>(object.sequence().items()[at]);
  if (object.is(Kind::kRange)) return std::optional<Value>(Value::integer(object.range().at(static_cast<int64_t>(at))));
  const Text& text = object.text();
  const size_t begin = text.byte_offset_of(at);
  return std::optional<Value>(
      Value::string(runtime.heap(), sub_text(text, begin, begin + utf8_length(text.bytes[begin]))));
}

struct Slice {
  Int start, stop, step;
};

Result<std::optional<Int>> slice_bound(const Value& bound) {
  if (bound.is(Kind::kMissing) || bound.is(Kind::kNone)) return std::optional<Int>();
  if (bound.is(Kind::kUndefined)) return invalid_argument(bound.undefined_message());
  if (!bound.is_integral()) return invalid_argument("slice indices must be integers or none");
  return std::optional<Int>(bound.as_int());
}

// Python's rules for negative, absent and out-of-range bounds.
Result<Slice> resolve_slice(const Value& start, const Value& stop, const Value& step, Int size) {
  QUIRE_ASSIGN_OR_RETURN(const auto given_step, slice_bound(step));
  const Int stride = std::clamp<Int>(given_step.value_or(1), -INT64_MAX, INT64_MAX);
  if (stride == 0) return invalid_argument("slice step cannot be zero");
  const Int lowest = stride < 0 ? -1 : 0, highest = stride < 0 ? size - 1 : size;
  const auto settle = [&](std::optional<Int> bound, Int absent) {
    if (!bound) return absent;
    return std::clamp<Int>(*bound < 0 ? *bound + size : *bound, lowest, highest);
  };
  QUIRE_ASSIGN_OR_RETURN(const auto given_start, slice_bound(start));
  QUIRE_ASSIGN_OR_RETURN(const auto given_stop, slice_bound(stop));
  return Slice{settle(given_start, stride < 0 ? highest : lowest), settle(given_stop, stride < 0 ? lowest : highest),
               stride};
}

Result<Value> slice_text(Runtime& runtime, const Text& text, const Slice& slice) {
  const auto in_range = [&slice](Int at) { return slice.step > 0 ? at < slice.stop : at > slice.stop; };
  TextBuilder out;
  if (slice.step == 1) {
    const size_t begin = text.byte_offset_of(static_cast<size_t>(slice.start));
    const size_t end = text.byte_offset_of(static_cast<size_t>(std::max(slice.start, slice.stop)));
    out.append(text, begin, end);
    return runtime.string(std::move(out), text.markup);
  }
  std::vector<size_t> starts;
  for (size_t at = 0; !text.ascii && at < text.bytes.size(); at += utf8_length(text.bytes[at])) starts.push_back(at);
  for (Int at = slice.start; in_range(at) && !runtime.meter().spent(); at += slice.step) {
    const auto index = static_cast<size_t>(at);
    const size_t begin = text.ascii ? index : starts[index];
    out.append(text, begin, begin + utf8_length(text.bytes[begin]));
  }
  return runtime.string(std::move(out), text.markup);
}

Value slice_range(Runtime& runtime, const Range& range, const Slice& slice) {
  const auto at = [&range](Int index) { return static_cast<int64_t>(Int{range.start()} + index * range.step()); };
  const auto step = static_cast<int64_t>(std::clamp<Int>(slice.step * range.step(), INT64_MIN, INT64_MAX));
  return Value(Kind::kRange, runtime.heap().make<Range>(at(slice.start), at(slice.stop), step));
}

}  // namespace

Result<std::optional<Value>> find_attribute(Runtime& runtime, const Value& object, std::string_view name) {
  if (object.is(Kind::kNative)) return object.native().attribute(runtime, name);
  if (object.is(Kind::kNamespace)) {
    const Value* value = object.name_space().find(name);
    return value != nullptr ? std::optional<Value>(*value) : std::nullopt;
  }
  if (is_forbidden(object, name)) return std::optional<Value>(unsafe(runtime, object, name));
  if (auto data = data_attribute(object, name)) return data;
  const Builtin* method = find_builtin(methods_of(object), name);
  if (method != nullptr) return std::optional<Value>(make_function(runtime.heap(), *method, object));
  if (is_internal_name(name)) return std::optional<Value>(unsafe(runtime, object, name));
  return std::optional<Value>();
}

Result<Value> get_attribute(Runtime& runtime, const Value& object, std::string_view name) {
  if (object.is(Kind::kUndefined) && !is_internal_name(name)) return invalid_argument(object.undefined_message());
  QUIRE_ASSIGN_OR_RETURN(auto attribute, find_attribute(runtime, object, name));
  if (attribute) return std::move(*attribute);
  if (object.is(Kind::kDict)) {
    if (const Value* value = object.dict().find(name)) return *value;
  }
  return no_attribute(runtime, object, name);
}

Result<Value> get_item(Runtime& runtime, const Value& object, const Value& key) {
  QUIRE_ASSIGN_OR_RETURN(auto value, find_key(runtime, object, key));
  if (value) return std::move(*value);
  if (!key.is(Kind::kString)) {
    return runtime.undefined("a " + quoted(type_name(object)) + " object has no such element");
  }
  QUIRE_ASSIGN_OR_RETURN(auto attribute, find_attribute(runtime, object, key.text().bytes));
  if (attribute) return std::move(*attribute);
  return no_attribute(runtime, object, key.text().bytes);
}

Result<Value> get_slice(Runtime& runtime, const Value& object, const Value& start, const Value& stop,
                        const Value& step) {
  if (object.is(Kind::kUndefined)) return invalid_argument(object.undefined_message());
  if (!object.is_sequence() && !object.is(Kind::kString) && !object.is(Kind::kRange)) {
    return invalid_argument("a value of type " + quoted(type_name(object)) + " cannot be sliced");
  }
  QUIRE_ASSIGN_OR_RETURN(const int64_t size, length(runtime, object));
  QUIRE_ASSIGN_OR_RETURN(const Slice slice, resolve_slice(start, stop, step, size));
  if (object.is(Kind::kString)) return slice_text(runtime, object.text(), slice);
  if (object.is(Kind::kRange)) return slice_range(runtime, object.range(), slice);
  const auto& source = object.sequence().items();
  std::vector<Value> items;
  for (Int at = slice.start; slice.step > 0 ? at < slice.stop : at > slice.stop; at += slice.step) {
    items.push_back(source[static_cast<size_t>(at)]);
  }
  QUIRE_RETURN_IF_ERROR(runtime.charge(items.size()));
  const Origin origin = object.sequence().origin();
  return object.is(Kind::kList) ? make_list(runtime.heap(), std::move(items), origin)
                                : make_tuple(runtime.heap(), std::move(items), origin);
}

Result<Value> get_path(Runtime& runtime, const Value& item, const Value& path, const Value& fallback) {
  if (path.is(Kind::kMissing) || path.is(Kind::kNone)) return item;
  const bool has_fallback = !fallback.is(Kind::kMissing) && !fallback.is(Kind::kNone);
  const auto step = [&](const Value& object, const Value& key) -> Result<Value> {
    QUIRE_ASSIGN_OR_RETURN(auto value, get_item(runtime, object, key));
    if (has_fallback && value.is(Kind::kUndefined)) return fallback;
    return value;
  };
  if (!path.is(Kind::kString)) return step(item, path);
  Value current = item;
  std::string_view rest = path.text().bytes;
  while (true) {
    QUIRE_RETURN_IF_ERROR(runtime.charge(1));
    const size_t dot = rest.find('.');
    const std::string_view part = rest.substr(0, dot);
    const bool number = !part.empty() && part.size() < 18 &&
                        std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
    const Value key = number ? Value::integer(std::stoll(std::string(part))) : runtime.string(part);
    QUIRE_ASSIGN_OR_RETURN(current, step(current, key));
    if (dot == std::string_view::npos) return current;
    rest.remove_prefix(dot + 1);
  }
}

const Builtin* find_builtin(std::span<const Builtin> table, std::string_view name) {
  for (const Builtin& builtin : table) {
    if (builtin.name == name) return &builtin;
  }
  return nullptr;
}

bool is_unsupported_method(std::string_view name) {
  static constexpr std::string_view kNames[] = {"encode", "translate", "maketrans", "fromkeys"};
  return one_of(kNames, name);
}

}  // namespace quire::jinja
