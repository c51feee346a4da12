// Which methods strings, lists, tuples, dicts and numbers have, and those of the containers themselves.
#include <cmath>

#include "jinja/attributes.h"
#include "jinja/compare.h"
#include "jinja/iteration.h"
#include "jinja/string_functions.h"

namespace quire::jinja {
namespace {

constexpr Builtin kStringMethods[] = {
    {"capitalize", "/", capitalize},
    {"casefold", "/", case_fold},
    {"center", "width fillchar? /", center},
    {"count", "sub start? end? /", count_text},
    {"endswith", "suffix start? end? /", ends_with},
    {"expandtabs", "tabsize?", expand_tabs},
    {"find", "sub start? end? /", find_text},
    {"format", "*", format},
    {"format_map", "mapping /", format_map},
    {"index", "sub start? end? /", index_text},
    {"isalnum", "/", is_alphanumeric_text},
    {"isalpha", "/", is_alpha_text},
    {"isascii", "/", is_ascii_text},
    {"isdecimal", "/", is_decimal_text},
    {"isdigit", "/", is_digit_text},
    {"isidentifier", "/", is_identifier_text},
    {"islower", "/", is_lower_text},
    {"isnumeric", "/", is_numeric_text},
    {"isprintable", "/", is_printable_text},
    {"isspace", "/", is_space_text},
    {"istitle", "/", is_title_text},
    {"isupper", "/", is_upper_text},
    {"join", "iterable /", join},
    {"ljust", "width fillchar? /", left_justify},
    {"lower", "/", lower},
    {"lstrip", "chars? /", strip_left},
    {"partition", "sep /", partition},
    {"removeprefix", "prefix /", remove_prefix},
    {"removesuffix", "suffix /", remove_suffix},
    {"replace", "old new count? /", replace},
    {"rfind", "sub start? end? /", find_last_text},
    {"rindex", "sub start? end? /", index_last_text},
    {"rjust", "width fillchar? /", right_justify},
    {"rpartition", "sep /", partition_last},
    {"rsplit", "sep? maxsplit?", split_last},
    {"rstrip", "chars? /", strip_right},
    {"split", "sep? maxsplit?", split},
    {"splitlines", "keepends?", split_lines},
    {"startswith", "prefix start? end? /", starts_with},
    {"strip", "chars? /", strip},
    {"swapcase", "/", swap_case},
    {"title", "/", title},
    {"upper", "/", upper},
    {"zfill", "width /", zero_fill},
};

Result<Value> index_of(Call& call) {
  QUIRE_ASSIGN_OR_RETURN(const auto items, collect(call.runtime, call.subject));
  const Int size = static_cast<Int>(items.size());
  QUIRE_ASSIGN_OR_RETURN(Int begin, int_argument(call, 1, 0));
  QUIRE_ASSIGN_OR_RETURN(Int end, int_argument(call, 2, size));
  const auto settle = [size](Int bound) { return bound < 0 ? (bound + size < 0 ? 0 : bound + size) : bound; };
  for (Int at = settle(begin); at < settle(end) && at < size; ++at) {
    QUIRE_ASSIGN_OR_RETURN(const bool same, equal(call.runtime, items[static_cast<size_t>(at)], call.args[0]));
    if (same) return Value::integer(at);
  }
  return invalid_argument("index(): the value is not in the list");
}

Result<Value> count_of(Call& call) {
  QUIRE_ASSIGN_OR_RETURN(const auto items, collect(call.runtime, call.subject));
  Int count = 0;
  for (const Value& item : items) {
    QUIRE_ASSIGN_OR_RETURN(const bool same, equal(call.runtime, item, call.args[0]));
    count += same ? 1 : 0;
  }
  return Value::integer(count);
}

Result<Value> itself(Call& call) { return call.subject; }

Result<Value> copy_list(Call& call) {
  return make_list(call.heap(), call.subject.sequence().items(), call.subject.sequence().origin());
}

constexpr Builtin kListMethods[] = {
    {"copy", "/", copy_list},
    {"count", "value /", count_of},
    {"index", "value start? stop? /", index_of},
};

constexpr Builtin kTupleMethods[] = {
    {"count", "value /", count_of},
    {"index", "value start? stop? /", index_of},
};

Result<Value> get(Call& call) {
  if (!hashable(call.args[0])) {
    return invalid_argument("unhashable type: " + quoted(type_name(call.args[0])));
  }
  if (const Value* value = call.subject.dict().find(call.args[0])) return *value;
  return call.given(1) ? call.args[1] : Value::none();
}

template <DictView::Part kPart>
Result<Value> view(Call& call) {
  return Value(Kind::kDictView, call.heap().make<DictView>(call.subject, kPart));
}

Result<Value> copy_dict(Call& call) {
  return make_dict(call.heap(), call.subject.dict().entries(), call.subject.dict().origin());
}

constexpr Builtin kDictMethods[] = {
    {"get", "key default? /", get},
    {"items", "/", view<DictView::Part::kItems>},
    {"keys", "/", view<DictView::Part::kKeys>},
    {"values", "/", view<DictView::Part::kValues>},
    {"copy", "/", copy_dict},
};

Result<Value> is_integer(Call& call) {
  if (call.subject.is(Kind::kFloat)) {
    const double value = call.subject.as_float();
    return Value::boolean(std::isfinite(value) && std::floor(value) == value);
  }
  return invalid_argument("is_integer() is a method of floats");
}

Result<Value> bit_length(Call& call) {
  if (call.subject.is(Kind::kFloat)) return invalid_argument("bit_length() is a method of integers");
  Int bits = 0;
  for (Int value = call.subject.as_int(); value != 0; value /= 2) ++bits;
  return Value::integer(bits);
}

constexpr Builtin kNumberMethods[] = {
    {"bit_length", "/", bit_length},
    {"conjugate", "/", itself},
    {"is_integer", "/", is_integer},
};

}  // namespace

std::span<const Builtin> string_methods() { return kStringMethods; }
std::span<const Builtin> list_methods() { return kListMethods; }
std::span<const Builtin> tuple_methods() { return kTupleMethods; }
std::span<const Builtin> dict_methods() { return kDictMethods; }
std::span<const Builtin> number_methods() { return kNumberMethods; }

}  // namespace quire::jinja
