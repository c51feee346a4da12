// Filters that make numbers.
#include <cmath>

#include "jinja/attributes.h"
#include "jinja/compare.h"
#include "jinja/filters.h"
#include "jinja/iteration.h"
#include "jinja/number.h"
#include "jinja/operators.h"
#include "jinja/string_functions.h"

namespace quire::jinja {
namespace {

Result<Value> absolute(Call& call) {
  const Value& value = call.subject;
  if (value.is_integral()) return value.as_int() < 0 ? negate(value) : plus(value);
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
  if (value.is(Kind::kFloat)) {
    if (std::isnan(value.as_float())) return default_or(call, 0, Value::integer(0));
    QUIRE_ASSIGN_OR_RETURN(const Int truncated, truncate_float(value.as_float()));
    return Value::integer(truncated);
  }
  if (!value.is(Kind::kString)) return default_or(call, 0, Value::integer(0));
  QUIRE_ASSIGN_OR_RETURN(const Int base, int_argument(call, 1, 10));
  const bool usable_base = base == 0 || (base >= 2 && base <= 36);
  const std::string& text = value.text().bytes;
  if (usable_base) {
    if (const auto integer = parse_int(text, static_cast<int>(base))) return Value::integer(*integer);
  }
  const auto floating = parse_float(text);
  if (!floating || !std::isfinite(*floating)) return default_or(call, 0, Value::integer(0));
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

Result<Value> round_filter(Call& call) {
  QUIRE_ASSIGN_OR_RETURN(const Int precision, int_argument(call, 0, 0));
  std::string method = "common";
  if (call.given(1)) {
    QUIRE_ASSIGN_OR_RETURN(const Value name, string_argument(call, 1, "round"));
    method = name.text().bytes;
  }
  if (method != "common" && method != "ceil" && method != "floor") {
    return invalid_argument("round knows the methods common, ceil and floor");
  }
  if (call.subject.is(Kind::kUndefined)) return invalid_argument(call.subject.undefined_message());
  if (!call.subject.is_number()) {
    return invalid_argument("round wants a number, not " + quoted(type_name(call.subject)));
  }
  if (method == "common") return round_number(call.subject, precision);
  QUIRE_ASSIGN_OR_RETURN(const Value unit, power_numbers(Value::integer(10), Value::integer(precision)));
  QUIRE_ASSIGN_OR_RETURN(const Value scaled, multiply_numbers(call.subject, unit));
  Value whole = scaled;
  if (scaled.is(Kind::kFloat)) {
    const double rounded = method == "ceil" ? std::ceil(scaled.as_float()) : std::floor(scaled.as_float());
    QUIRE_ASSIGN_OR_RETURN(const Int integer, truncate_float(rounded));
    whole = Value::integer(integer);
  }
  return divide_numbers(whole, unit);
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

Result<Value> file_size_format(Call& call) {
  QUIRE_ASSIGN_OR_RETURN(const Value number, to_float(call));
  const auto parsed = call.subject.is(Kind::kString) ? parse_float(call.subject.text().bytes) : std::nullopt;
  if (!call.subject.is_number() && !parsed) return invalid_argument("filesizeformat wants a number");
  const double bytes = number.as_float();
  const bool binary = call.given(0) && truthy(call.args[0]);
  const double base = binary ? 1024 : 1000;
  if (bytes == 1) return call.runtime.string("1 Byte");
  if (bytes < base) {
    QUIRE_ASSIGN_OR_RETURN(const Int whole, truncate_float(bytes));
    return call.runtime.string(int_text(whole) + " Bytes");
  }
  static constexpr std::string_view kPrefixes = "kMGTPEZY";
  double unit = base * base;
  size_t prefix = 0;
  for (; bytes >= unit && prefix + 1 < kPrefixes.size(); ++prefix) unit *= base;
  std::string name(1, binary && prefix == 0 ? 'K' : kPrefixes[prefix]);
  return call.runtime.string(format_float(base * bytes / unit, 'f', 1, false) + " " + name + (binary ? "iB" : "B"));
}

constexpr Builtin kFilters[] = {
    {"abs", "/", absolute},
    {"count", "/", length_filter},
    {"filesizeformat", "binary?", file_size_format},
    {"float", "default?", to_float},
    {"int", "default? base?", to_int},
    {"length", "/", length_filter},
    {"round", "precision? method?", round_filter},
    {"sum", "attribute? start?", sum},
};

}  // namespace

std::span<const Builtin> number_filters() { return kFilters; }

}  // namespace quire::jinja
