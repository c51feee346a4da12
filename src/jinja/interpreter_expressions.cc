#include "jinja/attributes.h"
#include "jinja/compare.h"
#include "jinja/interpreter.h"
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
      return constant(static_cast<const Constant&>(expr));
    case ExprKind::kName: {
      const auto& name = static_cast<const Name&>(expr);
      const Value& value = frame.at(name.slot);
      return value.is(Kind::kMissing) ? runtime_.undefined("'" + name.name + "' is undefined") : value;
    }
    case ExprKind::kTuple: {
      QUIRE_ASSIGN_OR_RETURN(auto items, evaluate_items(static_cast<const Items&>(expr), frame));
      return make_tuple(runtime_.heap(), std::move(items));
    }
    case ExprKind::kList: {
      QUIRE_ASSIGN_OR_RETURN(auto items, evaluate_items(static_cast<const Items&>(expr), frame));
      return make_list(runtime_.heap(), std::move(items));
    }
    case ExprKind::kDict:
      return evaluate_dict(static_cast<const DictDisplay&>(expr), frame);
    case ExprKind::kNegate:
    case ExprKind::kPlus:
    case ExprKind::kNot: {
      QUIRE_ASSIGN_OR_RETURN(const Value operand, evaluate(*static_cast<const Unary&>(expr).operand, frame));
      if (expr.kind == ExprKind::kNot) return Value::boolean(!truthy(operand));
      return expr.kind == ExprKind::kNegate ? negate(operand) : plus(operand);
    }
    case ExprKind::kBinary: {
      const auto& binary = static_cast<const Binary&>(expr);
      QUIRE_ASSIGN_OR_RETURN(const Value left, evaluate(*binary.left, frame));
      QUIRE_ASSIGN_OR_RETURN(const Value right, evaluate(*binary.right, frame));
      return apply(runtime_, binary.op, left, right);
    }
    case ExprKind::kLogical: {
      const auto& logical = static_cast<const Logical&>(expr);
      QUIRE_ASSIGN_OR_RETURN(Value left, evaluate(*logical.left, frame));
      return truthy(left) == logical.is_and ? evaluate(*logical.right, frame) : left;
    }
    case ExprKind::kCompare:
      return evaluate_compare(static_cast<const Compare&>(expr), frame);
    case ExprKind::kConcat:
      return evaluate_concat(static_cast<const Concat&>(expr), frame);
    case ExprKind::kConditional:
      return evaluate_conditional(static_cast<const Conditional&>(expr), frame);
    case ExprKind::kAttribute: {
      const auto& attribute = static_cast<const Attribute&>(expr);
      QUIRE_ASSIGN_OR_RETURN(const Value object, evaluate(*attribute.object, frame));
      return get_attribute(runtime_, object, attribute.name);
    }
    case ExprKind::kItem: {
      QUIRE_ASSIGN_OR_RETURN(const Value object, evaluate(*static_cast<const Item&>(expr).object, frame));
      QUIRE_ASSIGN_OR_RETURN(const Value key, evaluate(*static_cast<const Item&>(expr).key, frame));
      return get_item(runtime_, object, key);
    }
    case ExprKind::kSlice:
      return evaluate_slice(static_cast<const SliceItem&>(expr), frame);
    case ExprKind::kCall:
      return evaluate_call(static_cast<const CallExpr&>(expr), frame, nullptr);
    case ExprKind::kFilter:
    case ExprKind::kTest:
      return evaluate_applied(static_cast<const Applied&>(expr), frame);
    case ExprKind::kNamespaceAttribute:
      break;
  }
  return invalid_argument("this can only be assigned to");
}

Result<Value> Interpreter::evaluate_optional(const ExprPtr& expr, Activation& frame) {
  return expr == nullptr ? Result<Value>(Value()) : evaluate(*expr, frame);
}

Result<Value> Interpreter::constant(const Constant& node) {
  Value& cached = constants_[static_cast<size_t>(node.index)];
  if (!cached.is(Kind::kMissing)) return cached;
  if (const auto* text = std::get_if<std::string>(&node.value)) {
    cached = runtime_.string(*text);
  } else if (const auto* flag = std::get_if<bool>(&node.value)) {
    cached = Value::boolean(*flag);
  } else if (const auto* integer = std::get_if<Int>(&node.value)) {
    cached = Value::integer(*integer);
  } else if (const auto* floating = std::get_if<double>(&node.value)) {
    cached = Value::floating(*floating);
  } else {
    cached = Value::none();
  }
  return cached;
}

Result<std::vector<Value>> Interpreter::evaluate_items(const Items& node, Activation& frame) {
  std::vector<Value> items;
  items.reserve(node.items.size());
  for (const auto& item : node.items) {
    QUIRE_ASSIGN_OR_RETURN(items.emplace_back(), evaluate(*item, frame));
  }
  return items;
}

Result<Value> Interpreter::evaluate_dict(const DictDisplay& node, Activation& frame) {
  Dict::Entries entries;
  entries.reserve(node.entries.size());
  for (const auto& [key_expr, value_expr] : node.entries) {
    QUIRE_ASSIGN_OR_RETURN(Value key, evaluate(*key_expr, frame));
    QUIRE_ASSIGN_OR_RETURN(Value value, evaluate(*value_expr, frame));
    if (!hashable(key)) return invalid_argument("unhashable type: " + quoted(type_name(key)));
    entries.emplace_back(std::move(key), std::move(value));
  }
  return make_dict(runtime_.heap(), std::move(entries));
}

Result<bool> Interpreter::compare_pair(Comparison comparison, const Value& left, const Value& right) {
  switch (comparison) {
    case Comparison::kEqual:
      return equal(runtime_, left, right);
    case Comparison::kNotEqual: {
      QUIRE_ASSIGN_OR_RETURN(const bool same, equal(runtime_, left, right));
      return !same;
    }
    case Comparison::kIn:
      return contains(runtime_, right, left);
    case Comparison::kNotIn: {
      QUIRE_ASSIGN_OR_RETURN(const bool found, contains(runtime_, right, left));
      return !found;
    }
    default:
      break;
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

Result<Value> Interpreter::evaluate_compare(const Compare& node, Activation& frame) {
  QUIRE_ASSIGN_OR_RETURN(Value left, evaluate(*node.first, frame));
  for (const auto& [comparison, operand] : node.rest) {
    QUIRE_ASSIGN_OR_RETURN(Value right, evaluate(*operand, frame));
    QUIRE_ASSIGN_OR_RETURN(const bool holds, compare_pair(comparison, left, right));
    if (!holds) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Result<Value> Interpreter::evaluate_concat(const Concat& node, Activation& frame) {
  QUIRE_RETURN_IF_ERROR(runtime_.charge(1));
  TextBuilder out;
  for (const auto& part : node.parts) {
    QUIRE_ASSIGN_OR_RETURN(const Value value, evaluate(*part, frame));
    QUIRE_RETURN_IF_ERROR(append_str(runtime_, value, out));
  }
  return runtime_.string(std::move(out));
}

Result<Value> Interpreter::evaluate_conditional(const Conditional& node, Activation& frame) {
  QUIRE_ASSIGN_OR_RETURN(const Value condition, evaluate(*node.condition, frame));
  if (truthy(condition)) return evaluate(*node.then, frame);
  if (node.otherwise != nullptr) return evaluate(*node.otherwise, frame);
  return runtime_.undefined("the inline if-expression on line " + std::to_string(node.line) +
                            " evaluated to false and has no else");
}

Result<Value> Interpreter::evaluate_slice(const SliceItem& node, Activation& frame) {
  QUIRE_ASSIGN_OR_RETURN(const Value object, evaluate(*node.object, frame));
  QUIRE_ASSIGN_OR_RETURN(const Value start, evaluate_optional(node.start, frame));
  QUIRE_ASSIGN_OR_RETURN(const Value stop, evaluate_optional(node.stop, frame));
  QUIRE_ASSIGN_OR_RETURN(const Value step, evaluate_optional(node.step, frame));
  return get_slice(runtime_, object, start, stop, step);
}

Result<Arguments> Interpreter::evaluate_arguments(const CallArguments& node, Activation& frame) {
  Arguments arguments;
  for (const auto& argument : node.positional) {
    QUIRE_ASSIGN_OR_RETURN(arguments.positional.emplace_back(), evaluate(*argument, frame));
  }
  if (node.more_positional != nullptr) {
    QUIRE_ASSIGN_OR_RETURN(const Value more, evaluate(*node.more_positional, frame));
    QUIRE_ASSIGN_OR_RETURN(auto items, collect(runtime_, more));
    for (Value& item : items) arguments.positional.push_back(std::move(item));
  }
  for (const auto& [name, argument] : node.named) {
    QUIRE_ASSIGN_OR_RETURN(Value value, evaluate(*argument, frame));
    arguments.named.emplace_back(make_text(name, Origin::kTemplate), std::move(value));
  }
  if (node.more_named == nullptr) return arguments;
  QUIRE_ASSIGN_OR_RETURN(const Value more, evaluate(*node.more_named, frame));
  if (more.is(Kind::kUndefined)) return invalid_argument(more.undefined_message());
  if (!more.is(Kind::kDict)) return invalid_argument("an argument behind ** must be a dict");
  for (const auto& [key, value] : more.dict().entries()) {
    if (!key.is(Kind::kString)) return invalid_argument("the keys of an argument behind ** must be strings");
    for (const auto& [name, argument] : node.named) {
      if (name == key.text().bytes) return invalid_argument("the argument '" + name + "' is given twice");
    }
    arguments.named.emplace_back(key.text(), value);
  }
  return arguments;
}

Result<Value> Interpreter::evaluate_call(const CallExpr& node, Activation& frame, const Value* caller) {
  QUIRE_ASSIGN_OR_RETURN(const Value callee, evaluate(*node.callee, frame));
  QUIRE_ASSIGN_OR_RETURN(Arguments arguments, evaluate_arguments(node.arguments, frame));
  if (caller != nullptr) {
    for (const auto& [name, value] : arguments.named) {
      if (name.bytes == "caller") return invalid_argument("the argument 'caller' is given twice");
    }
    arguments.named.emplace_back(make_text("caller", Origin::kTemplate), *caller);
  }
  return runtime_.call(callee, std::move(arguments));
}

Result<Value> Interpreter::evaluate_applied(const Applied& node, Activation& frame) {
  Value subject;
  if (node.subject != nullptr) {
    QUIRE_ASSIGN_OR_RETURN(subject, evaluate(*node.subject, frame));
  } else {
    subject = *captured_;
  }
  QUIRE_ASSIGN_OR_RETURN(Arguments arguments, evaluate_arguments(node.arguments, frame));
  if (node.builtin == nullptr) {
    return unsupported(std::string("there is no ") + (node.kind == ExprKind::kFilter ? "filter" : "test") + " '" +
                       node.name + "'");
  }
  return invoke(runtime_, *node.builtin, std::move(subject), std::move(arguments));
}

}  // namespace quire::jinja
