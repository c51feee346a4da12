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
    case StatementKind::kSet: {
      const auto& node = static_cast<const Set&>(statement);
      QUIRE_ASSIGN_OR_RETURN(Value value, evaluate(*node.value, frame));
      QUIRE_RETURN_IF_ERROR(assign(*node.target, std::move(value), frame));
      return Flow::kNext;
    }
    case StatementKind::kBlock:
      return execute_block(static_cast<const Block&>(statement), frame);
    case StatementKind::kMacro: {
      const auto& node = static_cast<const Macro&>(statement);
      frame.at(node.slot) = make_macro(*this, node, frame);
      return Flow::kNext;
    }
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
    frame.at(target.slot) = std::move(value);
    return Status();
  }
  if (target.kind == ExprKind::kNamespaceAttribute) {
    const Expr& name = *target.children[0];
    const Value& holder = frame.at(name.slot);
    if (!holder.is(Kind::kNamespace)) {
      return invalid_argument("'" + name.name + "' is not a namespace, so its attributes cannot be set");
    }
    QUIRE_RETURN_IF_ERROR(runtime_.charge(holder.name_space().attributes().size() / kBytesPerStep));
    holder.name_space().set(runtime_.string(target.name), std::move(value));
    return Status();
  }
  const auto& targets = target.children;
  QUIRE_ASSIGN_OR_RETURN(auto items, collect(runtime_, value));
  if (items.size() != targets.size()) {
    return invalid_argument("cannot unpack " + std::to_string(items.size()) + " values into " +
                            std::to_string(targets.size()) + " names");
  }
  for (size_t i = 0; i < targets.size(); ++i) QUIRE_RETURN_IF_ERROR(assign(*targets[i], std::move(items[i]), frame));
  return Status();
}

Result<Interpreter::Flow> Interpreter::execute_block(const Block& node, Activation& frame) {
  enter(node.scope, frame);
  if (node.captures()) {
    Value text;
    {
      Capture capture(*this);
      QUIRE_ASSIGN_OR_RETURN(const Flow flow, execute(node.body, frame));
      if (flow != Flow::kNext) return flow;
      QUIRE_ASSIGN_OR_RETURN(text, capture.take());
    }
    QUIRE_RETURN_IF_ERROR(deliver(node, std::move(text), frame));
  } else {
    QUIRE_ASSIGN_OR_RETURN(const Flow flow, execute(node.body, frame));
    if (flow != Flow::kNext) return flow;
  }
  leave(node.scope, frame);
  return Flow::kNext;
}

// Brings what a block captured to where it goes.
Status Interpreter::deliver(const Block& node, Value text, Activation& frame) {
  if (node.filter != nullptr) {
    captured_ = &text;
    QUIRE_ASSIGN_OR_RETURN(Value filtered, evaluate(*node.filter, frame));
    text = std::move(filtered);
  }
  if (node.target != nullptr) return assign(*node.target, std::move(text), frame);
  // It becomes output as it is, so jinja2 accepts nothing but a string.
  if (!text.is(Kind::kString)) return invalid_argument("a block makes " + quoted(type_name(text)) + ", not a string");
  return append_str(runtime_, text, *out_);
}

}  // namespace quire::jinja
