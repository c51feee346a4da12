// Walking a syntax tree in the order of the source, as far as scope analysis cares.
#pragma once

#include <functional>

#include "jinja/ast.h"

namespace quire::jinja {

// Calls visit(child) for every direct child of an expression.
template <typename Visitor>
void for_each_child(Expr& expr, Visitor visit);

enum class NameUse : uint8_t { kLoad, kStore };

// Calls visit(name, use) for every name below a body, in nested scopes too.
using NameVisitor = std::function<void(const Name&, NameUse)>;
void for_each_name(const Body& body, const NameVisitor& visit);
void for_each_name(const Statement& statement, const NameVisitor& visit);

template <typename Visitor>
void for_each_argument(CallArguments& arguments, Visitor visit) {
  for (auto& argument : arguments.positional) visit(*argument);
  for (auto& [name, argument] : arguments.named) visit(*argument);
  if (arguments.more_positional != nullptr) visit(*arguments.more_positional);
  if (arguments.more_named != nullptr) visit(*arguments.more_named);
}

template <typename Visitor>
void for_each_child(Expr& expr, Visitor visit) {
  const auto visit_optional = [&visit](const ExprPtr& child) {
    if (child != nullptr) visit(*child);
  };
  switch (expr.kind) {
    case ExprKind::kConstant:
    case ExprKind::kName:
    case ExprKind::kNamespaceAttribute:
      break;
    case ExprKind::kTuple:
    case ExprKind::kList:
      for (auto& item : static_cast<Items&>(expr).items) visit(*item);
      break;
    case ExprKind::kDict:
      for (auto& [key, value] : static_cast<DictDisplay&>(expr).entries) {
        visit(*key);
        visit(*value);
      }
      break;
    case ExprKind::kNegate:
    case ExprKind::kPlus:
    case ExprKind::kNot:
      visit(*static_cast<Unary&>(expr).operand);
      break;
    case ExprKind::kBinary:
      visit(*static_cast<Binary&>(expr).left);
      visit(*static_cast<Binary&>(expr).right);
      break;
    case ExprKind::kLogical:
      visit(*static_cast<Logical&>(expr).left);
      visit(*static_cast<Logical&>(expr).right);
      break;
    case ExprKind::kCompare:
      visit(*static_cast<Compare&>(expr).first);
      for (auto& [op, operand] : static_cast<Compare&>(expr).rest) visit(*operand);
      break;
    case ExprKind::kConcat:
      for (auto& part : static_cast<Concat&>(expr).parts) visit(*part);
      break;
    case ExprKind::kConditional: {
      auto& conditional = static_cast<Conditional&>(expr);
      visit(*conditional.condition);
      visit(*conditional.then);
      visit_optional(conditional.otherwise);
      break;
    }
    case ExprKind::kAttribute:
      visit(*static_cast<Attribute&>(expr).object);
      break;
    case ExprKind::kItem:
      visit(*static_cast<Item&>(expr).object);
      visit(*static_cast<Item&>(expr).key);
      break;
    case ExprKind::kSlice: {
      auto& slice = static_cast<SliceItem&>(expr);
      visit(*slice.object);
      visit_optional(slice.start);
      visit_optional(slice.stop);
      visit_optional(slice.step);
      break;
    }
    case ExprKind::kCall:
      visit(*static_cast<CallExpr&>(expr).callee);
      for_each_argument(static_cast<CallExpr&>(expr).arguments, visit);
      break;
    case ExprKind::kFilter:
    case ExprKind::kTest:
      visit_optional(static_cast<Applied&>(expr).subject);
      for_each_argument(static_cast<Applied&>(expr).arguments, visit);
      break;
  }
}

}  // namespace quire::jinja
