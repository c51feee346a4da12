#include "jinja/is_tests.h"

#include "jinja/compare.h"
#include "jinja/iteration.h"
#include "jinja/operators.h"

namespace quire::jinja {
namespace {

template <Kind kKind>
Result<Value> is_kind(Call& call) {
  return Value::boolean(call.subject.is(kKind));
}

Result<Value> defined(Call& call) { return Value::boolean(!call.subject.is(Kind::kUndefined)); }
Result<Value> number(Call& call) { return Value::boolean(call.subject.is_number()); }
Result<Value> is_true(Call& call) { return Value::boolean(call.subject.is(Kind::kBool) && call.subject.as_bool()); }
Result<Value> is_false(Call& call) { return Value::boolean(call.subject.is(Kind::kBool) && !call.subject.as_bool()); }

Result<Value> is_iterable(Call& call) { return Value::boolean(iterable(call.subject)); }

Result<Value> sequence(Call& call) {
  const Kind kind = call.subject.kind();
  return Value::boolean(call.subject.is_sequence() || kind == Kind::kString || kind == Kind::kDict ||
                        kind == Kind::kRange || kind == Kind::kUndefined);
}

// value % divisor == remainder
Result<Value> leaves(Call& call, const Value& divisor, Int remainder) {
  QUIRE_ASSIGN_OR_RETURN(const Value rest, apply(call.runtime, BinaryOperator::kModulo, call.subject, divisor));
  QUIRE_ASSIGN_OR_RETURN(const bool same, equal(call.runtime, rest, Value::integer(remainder)));
  return Value::boolean(same);
}

Result<Value> odd(Call& call) { return leaves(call, Value::integer(2), 1); }
Result<Value> even(Call& call) { return leaves(call, Value::integer(2), 0); }
Result<Value> divisible_by(Call& call) { return leaves(call, call.args[0], 0); }

Result<Value> same_as(Call& call) { return Value::boolean(same_object(call.subject, call.args[0])); }

Result<Value> in(Call& call) {
  QUIRE_ASSIGN_OR_RETURN(const bool found, contains(call.runtime, call.args[0], call.subject));
  return Value::boolean(found);
}

Result<Value> equal_to(Call& call) {
  QUIRE_ASSIGN_OR_RETURN(const bool same, equal(call.runtime, call.subject, call.args[0]));
  return Value::boolean(same);
}

Result<Value> not_equal_to(Call& call) {
  QUIRE_ASSIGN_OR_RETURN(const bool same, equal(call.runtime, call.subject, call.args[0]));
  return Value::boolean(!same);
}

template <bool kLess, bool kOrEqual>
Result<Value> ordered(Call& call) {
  QUIRE_ASSIGN_OR_RETURN(const auto order, compare(call.runtime, call.subject, call.args[0]));
  if (!order) return Value::boolean(false);
  return Value::boolean(*order == 0 ? kOrEqual : (*order < 0) == kLess);
}

constexpr Builtin kTests[] = {
    {"!=", "other /", not_equal_to},
    {"<", "other /", ordered<true, false>},
    {"<=", "other /", ordered<true, true>},
    {"==", "other /", equal_to},
    {">", "other /", ordered<false, false>},
    {">=", "other /", ordered<false, true>},
    {"boolean", "", is_kind<Kind::kBool>},
    {"defined", "", defined},
    {"divisibleby", "num", divisible_by},
    {"eq", "other /", equal_to},
    {"equalto", "other /", equal_to},
    {"even", "", even},
    {"false", "", is_false},
    {"float", "", is_kind<Kind::kFloat>},
    {"ge", "other /", ordered<false, true>},
    {"greaterthan", "other /", ordered<false, false>},
    {"gt", "other /", ordered<false, false>},
    {"in", "seq", in},
    {"integer", "", is_kind<Kind::kInt>},
    {"iterable", "", is_iterable},
    {"le", "other /", ordered<true, true>},
    {"lessthan", "other /", ordered<true, false>},
    {"lt", "other /", ordered<true, false>},
    {"mapping", "", is_kind<Kind::kDict>},
    {"ne", "other /", not_equal_to},
    {"none", "", is_kind<Kind::kNone>},
    {"number", "", number},
    {"odd", "", odd},
    {"sameas", "other", same_as},
    {"sequence", "", sequence},
    {"string", "", is_kind<Kind::kString>},
    {"true", "", is_true},
    {"undefined", "", is_kind<Kind::kUndefined>},
};

}  // namespace

const Builtin* find_test(std::string_view name) { return find_builtin(kTests, name); }

}  // namespace quire::jinja
