#include "jinja/compare.h"
#include "jinja/globals.h"
#include "jinja/interpreter.h"
#include "jinja/value_text.h"

namespace quire::jinja {

Interpreter::Interpreter(Runtime& runtime, const Program& program, Variables variables)
    : runtime_(runtime), program_(program), variables_(std::move(variables)), constants_(program.constants.size()) {}

Result<Text> Interpreter::run() {
  TextBuilder out(kMaxOutputBytes);
  out_ = &out;
  const auto frame = runtime_.heap().make<Activation>(program_.slots, Ref<Activation>());
  enter(program_.scope, *frame);
  const auto flow = execute(program_.body, *frame);
  if (!flow.ok()) {
    return Status(flow.status().code(), "line " + std::to_string(error_line_) + ": " + flow.status().message());
  }
  return out.take();
}

Value Interpreter::look_up(const std::string& name) {
  for (const auto& [key, value] : variables_) {
    if (key == name) return value;
  }
  return find_global(runtime_.heap(), name).value_or(Value());
}

void Interpreter::enter(const Scope& scope, Activation& frame) {
  for (const Scope::Entry& entry : scope.entries) {
    switch (entry.load) {
      case Scope::Load::kParameter:
        break;
      case Scope::Load::kContext:
        frame.slot(entry.slot) = look_up(entry.name);
        break;
      case Scope::Load::kAlias:
        frame.slot(entry.slot) = frame.at(entry.source);
        break;
      case Scope::Load::kUnset:
        frame.slot(entry.slot) = Value();
        break;
    }
  }
}

void Interpreter::leave(const Scope& scope, Activation& frame) {
  for (const Scope::Entry& entry : scope.entries) frame.slot(entry.slot) = Value();
}

Result<Interpreter::Flow> Interpreter::execute(const Body& body, Activation& frame) {
  for (const auto& statement : body) {
    QUIRE_ASSIGN_OR_RETURN(const Flow flow, execute(*statement, frame));
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Result<Interpreter::Flow> Interpreter::execute(const Statement& statement, Activation& frame) {
  const DepthGuard guard(runtime_);
  if (!guard.status().ok()) return locate(guard.status(), statement.line);
  if (Status charged = runtime_.charge(1); !charged.ok()) return locate(std::move(charged), statement.line);
  auto flow = execute_kind(statement, frame);
  if (!flow.ok()) return locate(flow.status(), statement.line);
  return flow;
}

Result<Interpreter::Flow> Interpreter::execute_kind(const Statement& statement, Activation& frame) {
  switch (statement.kind) {
    case StatementKind::kOutput:
      QUIRE_RETURN_IF_ERROR(write(static_cast<const Output&>(statement), frame));
      return Flow::kNext;
    case StatementKind::kIf:
      return execute_if(static_cast<const If&>(statement), frame);
    case StatementKind::kFor:
      return execute_for(static_cast<const For&>(statement), frame);
    case StatementKind::kSet:
      QUIRE_RETURN_IF_ERROR(execute_set(static_cast<const Set&>(statement), frame));
      return Flow::kNext;
    case StatementKind::kSetBlock:
      return execute_set_block(static_cast<const SetBlock&>(statement), frame);
    case StatementKind::kWith:
      return execute_with(static_cast<const With&>(statement), frame);
    case StatementKind::kScope:
      return execute_scope(static_cast<const ScopeBlock&>(statement), frame);
    case StatementKind::kFilterBlock:
      return execute_filter_block(static_cast<const FilterBlock&>(statement), frame);
    case StatementKind::kMacro: {
      const auto& node = static_cast<const Macro&>(statement);
      frame.at(node.slot) = make_macro(*this, node.macro, frame);
      return Flow::kNext;
    }
    case StatementKind::kCallBlock:
      QUIRE_RETURN_IF_ERROR(execute_call_block(static_cast<const CallBlock&>(statement), frame));
      return Flow::kNext;
    case StatementKind::kBreak:
      return Flow::kBreak;
    case StatementKind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNext;
}

Status Interpreter::write(const Output& node, Activation& frame) {
  for (const Output::Piece& piece : node.pieces) {
    if (piece.expr == nullptr) {
      out_->append(piece.data, Origin::kTemplate);
      QUIRE_RETURN_IF_ERROR(runtime_.charge_bytes(piece.data.size()));
    } else {
      QUIRE_ASSIGN_OR_RETURN(const Value value, evaluate(*piece.expr, frame));
      QUIRE_RETURN_IF_ERROR(append_str(runtime_, value, *out_));
    }
    if (out_->overflowed()) {
      return out_of_range("the output is longer than " + std::to_string(kMaxOutputBytes >> 20) + " MiB");
    }
  }
  return Status();
}

Result<Interpreter::Flow> Interpreter::execute_if(const If& node, Activation& frame) {
  for (const If::Branch& branch : node.branches) {
    QUIRE_ASSIGN_OR_RETURN(const Value condition, evaluate(*branch.condition, frame));
    if (truthy(condition)) return execute(branch.body, frame);
  }
  return execute(node.otherwise, frame);
}

Status Interpreter::assign(const Expr& target, Value value, Activation& frame) {
  if (target.kind == ExprKind::kName) {
    frame.at(static_cast<const Name&>(target).slot) = std::move(value);
    return Status();
  }
  if (target.kind == ExprKind::kNamespaceAttribute) {
    const auto& attribute = static_cast<const NamespaceAttribute&>(target);
    const Value& holder = frame.at(attribute.slot);
    if (!holder.is(Kind::kNamespace)) {
      return invalid_argument("'" + attribute.name + "' is not a namespace, so its attributes cannot be set");
    }
    QUIRE_RETURN_IF_ERROR(runtime_.charge(holder.name_space().attributes().size() / kBytesPerStep));
    holder.name_space().set(runtime_.string(attribute.attribute), std::move(value));
    return Status();
  }
  const auto& targets = static_cast<const Items&>(target).items;
  QUIRE_ASSIGN_OR_RETURN(auto items, collect(runtime_, value));
  if (items.size() != targets.size()) {
    return invalid_argument("cannot unpack " + std::to_string(items.size()) + " values into " +
                            std::to_string(targets.size()) + " names");
  }
  for (size_t i = 0; i < targets.size(); ++i) QUIRE_RETURN_IF_ERROR(assign(*targets[i], std::move(items[i]), frame));
  return Status();
}

Status Interpreter::execute_set(const Set& node, Activation& frame) {
  QUIRE_ASSIGN_OR_RETURN(Value value, evaluate(*node.value, frame));
  return assign(*node.target, std::move(value), frame);
}

Result<Interpreter::Flow> Interpreter::execute_set_block(const SetBlock& node, Activation& frame) {
  enter(node.scope, frame);
  Value text;
  {
    Capture capture(*this);
    QUIRE_ASSIGN_OR_RETURN(const Flow flow, execute(node.body, frame));
    if (flow != Flow::kNext) return flow;
    QUIRE_ASSIGN_OR_RETURN(text, capture.take());
  }
  if (node.filter != nullptr) {
    captured_ = &text;
    QUIRE_ASSIGN_OR_RETURN(Value filtered, evaluate(*node.filter, frame));
    QUIRE_RETURN_IF_ERROR(assign(*node.target, std::move(filtered), frame));
  } else {
    QUIRE_RETURN_IF_ERROR(assign(*node.target, std::move(text), frame));
  }
  leave(node.scope, frame);
  return Flow::kNext;
}

Result<Interpreter::Flow> Interpreter::execute_with(const With& node, Activation& frame) {
  enter(node.scope, frame);
  for (const auto& [target, expr] : node.assignments) {
    QUIRE_ASSIGN_OR_RETURN(Value value, evaluate(*expr, frame));
    QUIRE_RETURN_IF_ERROR(assign(*target, std::move(value), frame));
  }
  QUIRE_ASSIGN_OR_RETURN(const Flow flow, execute(node.body, frame));
  if (flow == Flow::kNext) leave(node.scope, frame);
  return flow;
}

Result<Interpreter::Flow> Interpreter::execute_scope(const ScopeBlock& node, Activation& frame) {
  enter(node.scope, frame);
  QUIRE_ASSIGN_OR_RETURN(const Flow flow, execute(node.body, frame));
  if (flow == Flow::kNext) leave(node.scope, frame);
  return flow;
}

Result<Interpreter::Flow> Interpreter::execute_filter_block(const FilterBlock& node, Activation& frame) {
  enter(node.scope, frame);
  Value text;
  {
    Capture capture(*this);
    QUIRE_ASSIGN_OR_RETURN(const Flow flow, execute(node.body, frame));
    if (flow != Flow::kNext) return flow;
    QUIRE_ASSIGN_OR_RETURN(text, capture.take());
  }
  captured_ = &text;
  QUIRE_ASSIGN_OR_RETURN(const Value filtered, evaluate(*node.filter, frame));
  QUIRE_RETURN_IF_ERROR(write_block(filtered));
  leave(node.scope, frame);
  return Flow::kNext;
}

Status Interpreter::execute_call_block(const CallBlock& node, Activation& frame) {
  const Value caller = make_macro(*this, node.macro, frame);
  QUIRE_ASSIGN_OR_RETURN(const Value value, evaluate_call(static_cast<const CallExpr&>(*node.call), frame, &caller));
  return write_block(value);
}

// What a filter or call block makes becomes output as it is, so jinja2 accepts nothing but a string.
Status Interpreter::write_block(const Value& value) {
  if (!value.is(Kind::kString)) return invalid_argument("a block makes " + quoted(type_name(value)) + ", not a string");
  return append_str(runtime_, value, *out_);
}

}  // namespace quire::jinja
