#include "jinja/name_walk.h"

namespace quire::jinja {
namespace {

class NameWalker {
 public:
  explicit NameWalker(const NameVisitor& visit) : visit_(visit) {}

  void walk(const Body& body) {
    for (const auto& statement : body) walk(*statement);
  }

  void walk(const Statement& statement) {
    switch (statement.kind) {
      case StatementKind::kOutput:
        for (const auto& piece : static_cast<const Output&>(statement).pieces) see(piece.expr, NameUse::kLoad);
        break;
      case StatementKind::kIf:
        walk_if(static_cast<const If&>(statement));
        break;
      case StatementKind::kFor:
        walk_for(static_cast<const For&>(statement));
        break;
      case StatementKind::kSet:
        see(static_cast<const Set&>(statement).target, NameUse::kStore);
        see(static_cast<const Set&>(statement).value, NameUse::kLoad);
        break;
      case StatementKind::kBlock:
        walk_block(static_cast<const Block&>(statement));
        break;
      case StatementKind::kMacro:
        walk_macro(static_cast<const Macro&>(statement));
        break;
      case StatementKind::kBreak:
      case StatementKind::kContinue:
        break;
    }
  }

 private:
  void see(const ExprPtr& expr, NameUse use) {
    if (expr != nullptr) see(*expr, use);
  }

  void see(const Expr& expr, NameUse use) {
    if (expr.kind == ExprKind::kName) visit_(expr, use);
    // The namespace in `set ns.a = 1` is read, not set; jinja2 takes it for neither here.
    if (expr.kind == ExprKind::kNamespaceAttribute) return;
    expr.for_each_child([&](const Expr& child) { see(child, use); });
  }

  void walk_if(const If& node) {
    for (const auto& branch : node.branches) {
      see(branch.condition, NameUse::kLoad);
      walk(branch.body);
    }
    walk(node.otherwise);
  }

  void walk_for(const For& node) {
    see(node.target, NameUse::kStore);
    see(node.iterable, NameUse::kLoad);
    walk(node.body);
    walk(node.otherwise);
    see(node.condition, NameUse::kLoad);
  }

  // A set block is read before its body, a filter block behind it.
  void walk_block(const Block& node) {
    see(node.target, NameUse::kStore);
    if (node.target != nullptr) see(node.filter, NameUse::kLoad);
    walk(node.body);
    if (node.target == nullptr) see(node.filter, NameUse::kLoad);
  }

  void walk_macro(const Macro& macro) {
    for (const auto& parameter : macro.parameters) see(parameter, NameUse::kStore);
    for (const auto& value : macro.defaults) see(value, NameUse::kLoad);
    walk(macro.body);
  }

  const NameVisitor& visit_;
};

}  // namespace

void for_each_name(const Body& body, const NameVisitor& visit) { NameWalker(visit).walk(body); }
void for_each_name(const Statement& statement, const NameVisitor& visit) { NameWalker(visit).walk(statement); }

}  // namespace quire::jinja
