#include "jinja/globals.h"

#include "jinja/strftime.h"
#include "jinja/string_functions.h"
#include "jinja/value_text.h"

namespace quire::jinja {
namespace {

Result<Value> range(Call& call) {
  const auto& arguments = call.rest.positional;
  if (!call.rest.named.empty() || arguments.empty() || arguments.size() > 3) {
    return invalid_argument("range takes one to three integers");
  }
  Int bounds[3] = {0, 0, 1};
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].is(Kind::kUndefined)) return invalid_argument(arguments[i].undefined_message());
    if (!arguments[i].is_integral()) {
      return invalid_argument("range wants integers, not " + quoted(type_name(arguments[i])));
    }
    bounds[arguments.size() == 1 ? 1 : i] = arguments[i].as_int();
  }
  if (bounds[2] == 0) return invalid_argument("the step of range must not be zero");
  for (const Int bound : bounds) {
    if (bound > kMaxRangeBound || bound < -kMaxRangeBound) return out_of_range("a bound of range is too large");
  }
  const auto range = call.heap().make<Range>(bounds[0], bounds[1], bounds[2]);
  if (range->size() > kMaxRangeItems) {
    return out_of_range("range spans more than " + std::to_string(kMaxRangeItems) + " items");
  }
  return Value(Kind::kRange, range);
}

// The arguments of dict() and namespace(): a dict, then named values.
Result<Dict::Entries> dict_arguments(Call& call) {
  Dict::Entries entries;
  if (call.rest.positional.size() > 1) return invalid_argument("dict and namespace take one positional argument");
  if (!call.rest.positional.empty()) {
    const Value& source = call.rest.positional[0];
    if (source.is(Kind::kUndefined)) return invalid_argument(source.undefined_message());
    if (!source.is(Kind::kDict))
      return unsupported("dict and namespace take no " + quoted(type_name(source)) + " in quire");
    entries = source.dict().entries();
  }
  for (auto& [name, value] : call.rest.named) entries.emplace_back(Value::string(call.heap(), name), value);
  QUIRE_RETURN_IF_ERROR(call.runtime.charge(entries.size()));
  return entries;
}

Result<Value> dict(Call& call) {
  QUIRE_ASSIGN_OR_RETURN(auto entries, dict_arguments(call));
  return make_dict(call.heap(), std::move(entries));
}

Result<Value> name_space(Call& call) {
  QUIRE_ASSIGN_OR_RETURN(const auto entries, dict_arguments(call));
  const auto created = call.heap().make<Namespace>();
  for (const auto& [key, value] : entries) {
    QUIRE_RETURN_IF_ERROR(call.runtime.charge(created->attributes().size()));
    created->set(key, value);
  }
  return Value(Kind::kNamespace, created);
}

Result<Value> raise_exception(Call& call) {
  TextBuilder message;
  QUIRE_RETURN_IF_ERROR(append_str(call.runtime, call.args[0], message));
  return invalid_argument(message.take().bytes);
}

Result<Value> strftime_now(Call& call) {
  QUIRE_ASSIGN_OR_RETURN(const Value format, string_argument(call, 0, "strftime_now"));
  QUIRE_ASSIGN_OR_RETURN(const std::string text, format_time(format.text().bytes, call.runtime.now()));
  return call.runtime.string(text, format.text().joint_origin());
}

constexpr Builtin kGlobals[] = {
    {"dict", "*", dict},   {"namespace", "*", name_space},           {"raise_exception", "message", raise_exception},
    {"range", "*", range}, {"strftime_now", "format", strftime_now},
};

}  // namespace

std::optional<Value> find_global(Heap& heap, std::string_view name) {
  const Builtin* global = find_builtin(kGlobals, name);
  return global == nullptr ? std::nullopt : std::optional<Value>(make_function(heap, *global));
}

}  // namespace quire::jinja
