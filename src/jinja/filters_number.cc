// Filters that make numbers.
#include <cmath>
#include <cstdlib>

#include "jinja/attributes.h"
#include "jinja/filters.h"
#include "jinja/iteration.h"
#include "jinja/number.h"
#include "jinja/operators.h"
#include "jinja/string_functions.h"

namespace quire::jinja {
namespace {

constexpr Int kMaxPrecision = 18;  // of round: 10^18 is the largest power of ten in 64 bits

Result<Value> absolute(Call& call) {
  const Value& value = call.subject;
  if (value.is_integral()) return value.as_int() < 0 ? negate(value) : Result<Value>(Value::integer(value.as_int()));
  if (value.is(Kind::kFloat)) return Value::floating(std::fabs(value.as_float()));
  return invalid_argument("abs wants a number, not " + quoted(type_name(value)));
}

Result<Value> default_or(Call& call, size_t index, Value otherwise) {
  return call.given(index) ? call.args[index] : otherwise;
}

Result<Value> to_int(Call& call) {
  const Value& value = call.subject;
  if (value.is(Kind::kUndefined)) return invalid_argument(value.undefined_message());
  if (value.is_integral()) return Value::integer(value.as_int());
  std::optional<double> floating;
  if (value.is(Kind::kString)) {
    if (const auto integer = parse_int(value.text().bytes)) return Value::integer(*integer);
    floating = parse_float(value.text().bytes);
    if (floating && !std::isfinite(*floating)) floating.reset();
  } else if (value.is(Kind::kFloat) && !std::isnan(value.as_float())) {
    floating = value.as_float();
  }
  if (!floating) return default_or(call, 0, Value::integer(0));
  QUIRE_ASSIGN_OR_RETURN(const Int truncated, truncate_float(*floating));
  return Value::integer(truncated);
}

Result<Value> to_float(Call& call) {
  const Value& value = call.subject;
  if (value.is(Kind::kUndefined)) return invalid_argument(value.undefined_message());
  if (value.is_number()) return Value::floating(to_double(value));
  const auto floating = value.is(Kind::kString) ? parse_float(value.text().bytes) : std::nullopt;
  return floating ? Value::floating(*floating) : default_or(call, 0, Value::floating(0));
}

// 10^precision times the value, rounded up or down, divided by 10^precision.
Result<Value> round_towards(const Value& value, Int precision, bool up) {
  Int unit = 1;
  for (Int i = 0; i < precision; ++i) unit *= 10;
  QUIRE_ASSIGN_OR_RETURN(Value scaled, multiply_numbers(value, Value::integer(unit)));
  if (scaled.is(Kind::kFloat)) {
    const double rounded = up ? std::ceil(scaled.as_float()) : std::floor(scaled.as_float());
    QUIRE_ASSIGN_OR_RETURN(const Int whole, truncate_float(rounded));
    scaled = Value::integer(whole);
  }
  return divide_numbers(scaled, Value::integer(unit));
}

Result<Value> round_filter(Call& call) {
  const Value& value = call.subject;
  QUIRE_ASSIGN_OR_RETURN(const Int precision, int_argument(call, 0, 0));
  if (precision < 0 || precision > kMaxPrecision) {
    return unsupported("round takes a precision of 0 to " + std::to_string(kMaxPrecision) + " in quire");
  }
  std::string method = "common";
  if (call.given(1)) {
    QUIRE_ASSIGN_OR_RETURN(const Value name, string_argument(call, 1, "round"));
    method = name.text().bytes;
  }
  if (method != "common" && method != "ceil" && method != "floor") {
    return invalid_argument("round knows the methods common, ceil and floor");
  }
  if (value.is(Kind::kUndefined)) return invalid_argument(value.undefined_message());
  if (!value.is_number()) return invalid_argument("round wants a number, not " + quoted(type_name(value)));
  if (method != "common") return round_towards(value, precision, method == "ceil");
  if (value.is_integral()) return Value::integer(value.as_int());
  if (!std::isfinite(value.as_float())) return value;
  // Python rounds the exact decimal digits, ties to even, which printf does too.
  return Value::floating(std::strtod(format_float(value.as_float(), static_cast<int>(precision)).c_str(), nullptr));
}

Result<Value> length_filter(Call& call) {
  QUIRE_ASSIGN_OR_RETURN(const int64_t size, length(call.runtime, call.subject));
  return Value::integer(size);
}

Result<Value> sum(Call& call) {
  QUIRE_ASSIGN_OR_RETURN(const auto items, collect(call.runtime, call.subject));
  Value total = call.given(1) ? call.args[1] : Value::integer(0);
  if (total.is(Kind::kString)) return invalid_argument("sum cannot add strings; use join");
  for (const Value& item : items) {
    QUIRE_ASSIGN_OR_RETURN(const Value value, get_path(call.runtime, item, call.args[0]));
    QUIRE_ASSIGN_OR_RETURN(total, apply(call.runtime, BinaryOperator::kAdd, total, value));
  }
  return total;
}

constexpr Builtin kFilters[] = {
    {"abs", "/", absolute},
    {"count", "/", length_filter},
    {"float", "default?", to_float},
    {"int", "default?", to_int},
    {"length", "/", length_filter},
    {"round", "precision? method?", round_filter},
    {"sum", "attribute? start?", sum},
};

}  // namespace

std::span<const Builtin> number_filters() { return kFilters; }

}  // namespace quire::jinja
