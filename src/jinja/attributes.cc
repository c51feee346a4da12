#include "jinja/attributes.h"

#include <algorithm>

#include "jinja/iteration.h"
#include "jinja/known.h"
#include "jinja/methods.h"
#include "jinja/value_text.h"

namespace quire::jinja {
namespace {

// Methods that change their object, which an immutable sandbox does not hand out.
bool is_forbidden(const Value& object, std::string_view name) {
  static constexpr std::string_view kOfList[] = {"append", "clear", "pop",    "reverse",
                                                 "insert", "sort",  "extend", "remove"};
  static constexpr std::string_view kOfDict[] = {"clear", "pop", "popitem", "setdefault", "update"};
  const auto one_of = [name](const auto& names) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
  };
  return (object.is(Kind::kList) && one_of(kOfList)) || (object.is(Kind::kDict) && one_of(kOfDict));
}

Value no_attribute(Runtime& runtime, const Value& object, std::string_view name) {
  const std::string kind = object.is(Kind::kNone) ? "None" : quoted(std::string(type_name(object)) + " object");
  return runtime.undefined(kind + " has no attribute " + quoted(name));
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
  if (object.is(Kind::kRange)) return std::optional<Value>(Value::integer(object.range().at(index)));
  const Text& text = object.text();
  const size_t begin = text.byte_offset_of(at);
  return std::optional<Value>(
      Value::string(runtime.heap(), sub_text(text, begin, begin + utf8_length(text.bytes[begin]))));
}

// Only what Python's getattr() finds.
Result<std::optional<Value>> find_attribute(Runtime& runtime, const Value& object, std::string_view name) {
  if (object.is(Kind::kNative)) return object.native().attribute(runtime, name);
  if (object.is(Kind::kNamespace)) {
    const Value* value = object.name_space().find(name);
    return value != nullptr ? std::optional<Value>(*value) : std::nullopt;
  }
  if (is_forbidden(object, name)) {
    return std::optional<Value>(runtime.undefined("access to attribute " + quoted(name) + " of a " +
                                                  quoted(type_name(object)) + " object is unsafe"));
  }
  if (is_refused_attribute(object.kind(), name)) return not_known("method", name);
  const Builtin* method = find_method(object.kind(), name);
  if (method == nullptr) return std::optional<Value>();
  QUIRE_RETURN_IF_ERROR(refuse_safe(object));
  return std::optional<Value>(make_function(runtime.heap(), *method, object));
}

struct Slice {
  Int start, stop, step;
  bool holds(Int at) const { return step > 0 ? at < stop : at > stop; }
};

Result<std::optional<Int>> slice_bound(const Value& bound) {
  if (bound.is(Kind::kMissing) || bound.is(Kind::kNone)) return std::optional<Int>();
  if (bound.is(Kind::kUndefined)) return invalid_argument(bound.undefined_message());
  if (!bound.is_integral()) return invalid_argument("slice indices must be integers or none");
  return std::optional<Int>(bound.as_int());
}

// Python's rules for negative, absent and out-of-range bounds.
Result<Slice> resolve_slice(const SliceBounds& bounds, Int size) {
  QUIRE_ASSIGN_OR_RETURN(const auto given_step, slice_bound(bounds.step));
  // A longer step than the value is as good as any longer one, and cannot overflow.
  const Int step = std::clamp<Int>(given_step.value_or(1), -size - 1, size + 1);
  if (step == 0) return invalid_argument("slice step cannot be zero");
  const Int lowest = step < 0 ? -1 : 0, highest = step < 0 ? size - 1 : size;
  const auto settle = [&](std::optional<Int> bound, Int absent) {
    if (!bound) return absent;
    return std::clamp<Int>(*bound < 0 ? *bound + size : *bound, lowest, highest);
  };
  QUIRE_ASSIGN_OR_RETURN(const auto start, slice_bound(bounds.start));
  QUIRE_ASSIGN_OR_RETURN(const auto stop, slice_bound(bounds.stop));
  return Slice{settle(start, step < 0 ? highest : lowest), settle(stop, step < 0 ? lowest : highest), step};
}

Result<Value> slice_text(Runtime& runtime, const Text& text, const Slice& slice) {
  if (slice.step == 1) {
    const size_t begin = text.byte_offset_of(static_cast<size_t>(slice.start));
    const size_t end = text.byte_offset_of(static_cast<size_t>(std::max(slice.start, slice.stop)));
    QUIRE_RETURN_IF_ERROR(runtime.charge_bytes(end - begin));
    return Value::string(runtime.heap(), sub_text(text, begin, end));
  }
  TextBuilder out;
  std::vector<size_t> starts;
  for (size_t at = 0; !text.ascii && at < text.bytes.size(); at += utf8_length(text.bytes[at])) starts.push_back(at);
  for (Int at = slice.start; slice.holds(at) && !runtime.meter().spent(); at += slice.step) {
    const auto index = static_cast<size_t>(at);
    const size_t begin = text.ascii ? index : starts[index];
    out.append(text, begin, begin + utf8_length(text.bytes[begin]));
  }
  return runtime.string(std::move(out));
}

}  // namespace

Result<Value> get_attribute(Runtime& runtime, const Value& object, std::string_view name) {
  if (object.is(Kind::kUndefined)) return invalid_argument(object.undefined_message());
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

Result<Value> get_slice(Runtime& runtime, const Value& object, const SliceBounds& bounds) {
  if (object.is(Kind::kUndefined)) return invalid_argument(object.undefined_message());
  if (!object.is_sequence() && !object.is(Kind::kString)) {
    return invalid_argument("a value of type " + quoted(type_name(object)) + " cannot be sliced");
  }
  QUIRE_ASSIGN_OR_RETURN(const int64_t size, length(runtime, object));
  QUIRE_ASSIGN_OR_RETURN(const Slice slice, resolve_slice(bounds, size));
  if (object.is(Kind::kString)) return slice_text(runtime, object.text(), slice);
  const auto& source = object.sequence().items();
  std::vector<Value> items;
  for (Int at = slice.start; slice.holds(at); at += slice.step) items.push_back(source[static_cast<size_t>(at)]);
  QUIRE_RETURN_IF_ERROR(runtime.charge(items.size()));
  return make_sequence(runtime.heap(), object.kind(), std::move(items), object.sequence().origin());
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

}  // namespace quire::jinja
