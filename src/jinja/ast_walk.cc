#include "jinja/ast_walk.h"

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
        for (const auto& piece : static_cast<const Output&>(statement).pieces) load(piece.expr);
        break;
      case StatementKind::kIf:
        walk_if(static_cast<const If&>(statement));
        break;
      case StatementKind::kFor:
        walk_for(static_cast<const For&>(statement));
        break;
      case StatementKind::kSet:
        store(*static_cast<const Set&>(statement).target);
        load(static_cast<const Set&>(statement).value);
        break;
      case StatementKind::kSetBlock:
        store(*static_cast<const SetBlock&>(statement).target);
        load(static_cast<const SetBlock&>(statement).filter);
        walk(static_cast<const SetBlock&>(statement).body);
        break;
      case StatementKind::kWith:
        walk_with(static_cast<const With&>(statement));
        break;
      case StatementKind::kScope:
        walk(static_cast<const ScopeBlock&>(statement).body);
        break;
      case StatementKind::kFilterBlock:
        walk(static_cast<const FilterBlock&>(statement).body);
        load(static_cast<const FilterBlock&>(statement).filter);
        break;
      case StatementKind::kMacro:
        walk_macro(static_cast<const Macro&>(statement).macro);
        break;
      case StatementKind::kCallBlock:
        load(static_cast<const CallBlock&>(statement).call);
        walk_macro(static_cast<const CallBlock&>(statement).macro);
        break;
      case StatementKind::kBreak:
      case StatementKind::kContinue:
        break;
    }
  }

 private:
  void load(const ExprPtr& expr) {
    if (expr != nullptr) load(*expr);
  }

  void load(Expr& expr) {
    if (expr.kind == ExprKind::kName) visit_(static_cast<const Name&>(expr), NameUse::kLoad);
    for_each_child(expr, [this](Expr& child) { load(child); });
  }

  void store(Expr& target) {
    if (target.kind == ExprKind::kName) visit_(static_cast<const Name&>(target), NameUse::kStore);
    for_each_child(target, [this](Expr& child) { store(child); });
  }

  void walk_if(const If& node) {
    for (const auto& branch : node.branches) {
      load(branch.condition);
      walk(branch.body);
    }
    walk(node.otherwise);
  }

  void walk_for(const For& node) {
    store(*node.target);
    load(node.iterable);
    walk(node.body);
    walk(node.otherwise);
    load(node.condition);
  }

  void walk_with(const With& node) {
    for (const auto& [target, value] : node.assignments) store(*target);
    for (const auto& [target, value] : node.assignments) load(value);
    walk(node.body);
  }

  void walk_macro(const MacroBody& macro) {
    for (const auto& parameter : macro.parameters) visit_(*parameter, NameUse::kStore);
    for (const auto& value : macro.defaults) load(value);
    walk(macro.body);
  }

  const NameVisitor& visit_;
};

}  // namespace

void for_each_name(const Body& body, const NameVisitor& visit) { NameWalker(visit).walk(body); }
void for_each_name(const Statement& statement, const NameVisitor& visit) { NameWalker(visit).walk(statement); }

}  // namespace quire::jinja
