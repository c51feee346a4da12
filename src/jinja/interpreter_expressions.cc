#include "jinja/attributes.h"
#include "jinja/compare.h"
#include "jinja/interpreter.h"
#include "jinja/known.h"
#include "jinja/operators.h"
#include "jinja/value_text.h"

namespace quire::jinja {

// Remembers the line of the innermost node that failed.
Status Interpreter::locate(Status status, int line) {
  if (error_line_ == 0) error_line_ = line;
  return status;
}

Result<Value> Interpreter::evaluate(const Expr& expr, Activation& frame) {
  const DepthGuard guard(runtime_);
  if (!guard.status().ok()) return locate(guard.status(), expr.line);
  if (Status charged = runtime_.charge(1); !charged.ok()) return locate(std::move(charged), expr.line);
  auto value = evaluate_kind(expr, frame);
  if (!value.ok()) return locate(value.status(), expr.line);
  return value;
}

Result<Value> Interpreter::evaluate_kind(const Expr& expr, Activation& frame) {
  switch (expr.kind) {
    case ExprKind::kConstant:
      return constant(expr.constant);
    case ExprKind::kName: {
      const Value& value = frame.at(expr.slot);
      return value.is(Kind::kMissing) ? runtime_.undefined("'" + expr.name + "' is undefined") : value;
    }
    case ExprKind::kTuple:
    case ExprKind::kList: {
      QUIRE_ASSIGN_OR_RETURN(auto items, evaluate_children(expr, frame));
      return make_sequence(runtime_.heap(), expr.kind == ExprKind::kList ? Kind::kList : Kind::kTuple, std::move(items),
                           Origin::kTemplate);
    }
    case ExprKind::kDict:
      return evaluate_dict(expr, frame);
    case ExprKind::kNegate: {
      QUIRE_ASSIGN_OR_RETURN(const Value operand, evaluate(*expr.children[0], frame));
      return negate(operand);
    }
    case ExprKind::kNot: {
      QUIRE_ASSIGN_OR_RETURN(const Value operand, evaluate(*expr.children[0], frame));
      return Value::boolean(!truthy(operand));
    }
    case ExprKind::kAnd:
    case ExprKind::kOr: {
      QUIRE_ASSIGN_OR_RETURN(Value left, evaluate(*expr.children[0], frame));
      return truthy(left) == (expr.kind == ExprKind::kAnd) ? evaluate(*expr.children[1], frame) : left;
    }
    case ExprKind::kBinary: {
      QUIRE_ASSIGN_OR_RETURN(const auto operands, evaluate_children(expr, frame));
      return apply(runtime_, expr.op, operands[0], operands[1]);
    }
    case ExprKind::kCompare: {
      QUIRE_ASSIGN_OR_RETURN(const auto operands, evaluate_children(expr, frame));
      QUIRE_ASSIGN_OR_RETURN(const bool holds, compare_pair(expr.comparison, operands[0], operands[1]));
      return Value::boolean(holds);
    }
    case ExprKind::kConcat:
      return evaluate_concat(expr, frame);
    case ExprKind::kConditional:
      return evaluate_conditional(expr, frame);
    case ExprKind::kAttribute: {
      QUIRE_ASSIGN_OR_RETURN(const Value object, evaluate(*expr.children[0], frame));
      return get_attribute(runtime_, object, expr.name);
    }
    case ExprKind::kItem: {
      QUIRE_ASSIGN_OR_RETURN(const auto operands, evaluate_children(expr, frame));
      return get_item(runtime_, operands[0], operands[1]);
    }
    case ExprKind::kSlice: {
      QUIRE_ASSIGN_OR_RETURN(const auto operands, evaluate_children(expr, frame));
      return get_slice(runtime_, operands[0], {operands[1], operands[2], operands[3]});
    }
    case ExprKind::kCall: {
      QUIRE_ASSIGN_OR_RETURN(const Value callee, evaluate(*expr.children[0], frame));
      QUIRE_ASSIGN_OR_RETURN(Arguments arguments, evaluate_arguments(expr, frame));
      return runtime_.call(callee, std::move(arguments));
    }
    case ExprKind::kFilter:
    case ExprKind::kTest:
      return evaluate_applied(expr, frame);
    case ExprKind::kNamespaceAttribute:
    case ExprKind::kKeyword:
      break;
  }
  return invalid_argument("this is not a value by itself");
}

Value Interpreter::constant(int index) {
  Value& cached = constants_[static_cast<size_t>(index)];
  if (!cached.is(Kind::kMissing)) return cached;
  const Literal& literal = program_.constants[static_cast<size_t>(index)];
  if (const auto* text = std::get_if<std::string>(&literal)) {
    cached = runtime_.string(*text);
  } else if (const auto* flag = std::get_if<bool>(&literal)) {
    cached = Value::boolean(*flag);
  } else if (const auto* integer = std::get_if<Int>(&literal)) {
    cached = Value::integer(*integer);
  } else if (const auto* floating = std::get_if<double>(&literal)) {
    cached = Value::floating(*floating);
  } else {
    cached = Value::none();
  }
  return cached;
}

// The values of all children; missing for one that is null.
Result<std::vector<Value>> Interpreter::evaluate_children(const Expr& node, Activation& frame) {
  std::vector<Value> values(node.children.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (node.children[i] == nullptr) continue;
    QUIRE_ASSIGN_OR_RETURN(values[i], evaluate(*node.children[i], frame));
  }
  return values;
}

Result<Value> Interpreter::evaluate_dict(const Expr& node, Activation& frame) {
  Dict::Entries entries;
  entries.reserve(node.children.size() / 2);
  for (size_t i = 0; i < node.children.size(); i += 2) {
    QUIRE_ASSIGN_OR_RETURN(Value key, evaluate(*node.children[i], frame));
    QUIRE_ASSIGN_OR_RETURN(Value value, evaluate(*node.children[i + 1], frame));
    if (!hashable(key)) return unhashable(key);
    entries.emplace_back(std::move(key), std::move(value));
  }
  return make_dict(runtime_.heap(), std::move(entries));
}

Result<bool> Interpreter::compare_pair(Comparison comparison, const Value& left, const Value& right) {
  if (comparison == Comparison::kEqual || comparison == Comparison::kNotEqual) {
    QUIRE_ASSIGN_OR_RETURN(const bool same, equal(runtime_, left, right));
    return same == (comparison == Comparison::kEqual);
  }
  if (comparison == Comparison::kIn || comparison == Comparison::kNotIn) {
    QUIRE_ASSIGN_OR_RETURN(const bool found, contains(runtime_, right, left));
    return found == (comparison == Comparison::kIn);
  }
  QUIRE_ASSIGN_OR_RETURN(const auto order, compare(runtime_, left, right));
  if (!order) return false;
  switch (comparison) {
    case Comparison::kLess:
      return *order < 0;
    case Comparison::kLessEqual:
      return *order <= 0;
    case Comparison::kGreater:
      return *order > 0;
    default:
      return *order >= 0;
  }
}

Result<Value> Interpreter::evaluate_concat(const Expr& node, Activation& frame) {
  QUIRE_RETURN_IF_ERROR(runtime_.charge(1));
  TextBuilder out;
  for (const auto& part : node.children) {
    QUIRE_ASSIGN_OR_RETURN(const Value value, evaluate(*part, frame));
    QUIRE_RETURN_IF_ERROR(append_str(runtime_, value, out));
  }
  return runtime_.string(std::move(out));
}

Result<Value> Interpreter::evaluate_conditional(const Expr& node, Activation& frame) {
  QUIRE_ASSIGN_OR_RETURN(const Value condition, evaluate(*node.children[0], frame));
  if (truthy(condition)) return evaluate(*node.children[1], frame);
  if (node.children[2] != nullptr) return evaluate(*node.children[2], frame);
  return runtime_.undefined("the inline if-expression on line " + std::to_string(node.line) +
                            " evaluated to false and has no else");
}

// All children but the first are arguments.
Result<Arguments> Interpreter::evaluate_arguments(const Expr& node, Activation& frame) {
  Arguments arguments;
  for (size_t i = 1; i < node.children.size(); ++i) {
    const Expr& argument = *node.children[i];
    if (argument.kind == ExprKind::kKeyword) {
      QUIRE_ASSIGN_OR_RETURN(Value value, evaluate(*argument.children[0], frame));
      arguments.named.emplace_back(make_text(argument.name, Origin::kTemplate), std::move(value));
    } else {
      QUIRE_ASSIGN_OR_RETURN(arguments.positional.emplace_back(), evaluate(argument, frame));
    }
  }
  return arguments;
}

Result<Value> Interpreter::evaluate_applied(const Expr& node, Activation& frame) {
  Value subject;
  if (node.children[0] != nullptr) {
    QUIRE_ASSIGN_OR_RETURN(subject, evaluate(*node.children[0], frame));
  } else {
    subject = *captured_;
  }
  QUIRE_ASSIGN_OR_RETURN(Arguments arguments, evaluate_arguments(node, frame));
  if (node.builtin == nullptr) return not_known(node.kind == ExprKind::kFilter ? "filter" : "test", node.name);
  return invoke(runtime_, *node.builtin, std::move(subject), std::move(arguments));
}

}  // namespace quire::jinja
