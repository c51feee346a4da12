#include "jinja/operators.h"

#include "jinja/number.h"
#include "jinja/value_text.h"

namespace quire::jinja {
namespace {

std::string_view symbol(BinaryOperator op) {
  constexpr std::string_view kSymbols[] = {"+", "-", "*", "/", "//", "%"};
  return kSymbols[static_cast<size_t>(op)];
}

Status wrong_operands(BinaryOperator op, const Value& left, const Value& right) {
  return invalid_argument(quoted(symbol(op)) + " does not take " + quoted(type_name(left)) + " and " +
                          quoted(type_name(right)));
}

Result<Value> add_strings(Runtime& runtime, const Value& left, const Value& right) {
  QUIRE_RETURN_IF_ERROR(refuse_safe(left));
  QUIRE_RETURN_IF_ERROR(refuse_safe(right));
  TextBuilder out;
  out.append(left.text());
  out.append(right.text());
  return runtime.string(std::move(out));
}

Result<Value> add(Runtime& runtime, const Value& left, const Value& right) {
  if (left.is(Kind::kString) && right.is(Kind::kString)) return add_strings(runtime, left, right);
  if (!left.is_sequence() || left.kind() != right.kind()) return wrong_operands(BinaryOperator::kAdd, left, right);
  const auto& head = left.sequence().items();
  const auto& tail = right.sequence().items();
  QUIRE_RETURN_IF_ERROR(runtime.charge(head.size() + tail.size()));
  if (head.size() + tail.size() > kMaxListItems) {
    return out_of_range("a list of the template is too long");
  }
  std::vector<Value> items;
  items.reserve(head.size() + tail.size());
  items.insert(items.end(), head.begin(), head.end());
  items.insert(items.end(), tail.begin(), tail.end());
  return make_sequence(runtime.heap(), left.kind(), std::move(items), Origin::kTemplate);
}

Result<Value> repeat(Runtime& runtime, const Value& value, Int count) {
  const auto times = static_cast<size_t>(count < 0 ? 0 : count > INT32_MAX ? INT32_MAX : count);
  if (value.is(Kind::kString)) {
    TextBuilder out;
    out.append_repeated(value.text(), times);
    return runtime.string(std::move(out));
  }
  const auto& items = value.sequence().items();
  if (!items.empty() && times > kMaxListItems / items.size()) {
    return out_of_range("the template repeats a list to too many items");
  }
  std::vector<Value> repeated;
  repeated.reserve(items.size() * times);
  for (size_t i = 0; i < times && !items.empty(); ++i) repeated.insert(repeated.end(), items.begin(), items.end());
  QUIRE_RETURN_IF_ERROR(runtime.charge(repeated.size()));
  return make_sequence(runtime.heap(), value.kind(), std::move(repeated), Origin::kTemplate);
}

Result<Value> multiply(Runtime& runtime, const Value& left, const Value& right) {
  const auto repeatable = [](const Value& value) { return value.is(Kind::kString) || value.is_sequence(); };
  if (repeatable(left) && right.is_integral()) return repeat(runtime, left, right.as_int());
  if (left.is_integral() && repeatable(right)) return repeat(runtime, right, left.as_int());
  return wrong_operands(BinaryOperator::kMultiply, left, right);
}

Result<Value> apply_to_numbers(BinaryOperator op, const Value& left, const Value& right) {
  switch (op) {
    case BinaryOperator::kAdd:
      return add_numbers(left, right);
    case BinaryOperator::kSubtract:
      return subtract_numbers(left, right);
    case BinaryOperator::kMultiply:
      return multiply_numbers(left, right);
    case BinaryOperator::kDivide:
      return divide_numbers(left, right);
    case BinaryOperator::kFloorDivide:
      return floor_divide_numbers(left, right);
    case BinaryOperator::kModulo:
      return modulo_numbers(left, right);
  }
  return wrong_operands(op, left, right);
}

}  // namespace

Result<Value> apply(Runtime& runtime, BinaryOperator op, const Value& left, const Value& right) {
  if (left.is_number() && right.is_number()) return apply_to_numbers(op, left, right);
  if (op == BinaryOperator::kModulo && left.is(Kind::kString)) {
    QUIRE_RETURN_IF_ERROR(refuse_safe(left));
    return percent_format(runtime, left.text(), right);
  }
  if (left.is(Kind::kUndefined)) return invalid_argument(left.undefined_message());
  if (right.is(Kind::kUndefined)) return invalid_argument(right.undefined_message());
  if (op == BinaryOperator::kAdd) return add(runtime, left, right);
  if (op == BinaryOperator::kMultiply) return multiply(runtime, left, right);
  return wrong_operands(op, left, right);
}

Result<Value> negate(const Value& value) {
  if (value.is_integral()) return subtract_numbers(Value::integer(0), value);
  if (value.is(Kind::kFloat)) return Value::floating(-value.as_float());
  if (value.is(Kind::kUndefined)) return invalid_argument(value.undefined_message());
  return invalid_argument("'-' does not take " + quoted(type_name(value)));
}

}  // namespace quire::jinja
