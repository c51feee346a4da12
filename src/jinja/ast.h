// Syntax tree of a template. Nodes are plain data: the parser builds them, scope analysis (scope.h) fills in where
// variables live, the interpreter reads them; after that they never change, so renderings may share them.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "jinja/operators.h"
#include "jinja/runtime.h"

namespace quire::jinja {

// Where a variable lives: so many activations out from the running one, then a slot in it.
struct SlotRef {
  int hops = 0;
  int index = -1;
};

// What happens to the variables of a scope when control enters it.
struct Scope {
  enum class Load : uint8_t {
    kParameter,  // set by who enters the scope
    kContext,    // looked up among the variables of the rendering
    kAlias,      // copied from the enclosing scope
    kUnset,
  };
  struct Entry {
    int slot;
    Load load;
    std::string name;  // kContext
    SlotRef source;    // kAlias
  };
  std::vector<Entry> entries;
};

enum class ExprKind : uint8_t {
  kConstant,
  kName,
  kTuple,
  kList,
  kDict,
  kNegate,
  kPlus,
  kNot,
  kBinary,
  kLogical,
  kCompare,
  kConcat,
  kConditional,
  kAttribute,
  kItem,
  kSlice,
  kCall,
  kFilter,
  kTest,
  kNamespaceAttribute,
};

struct Expr {
  Expr(ExprKind kind_of, int line_of) : kind(kind_of), line(line_of) {}
  virtual ~Expr() = default;
  ExprKind kind;
  int line;
  int height = 1;  // levels of nodes below and including this one
};
using ExprPtr = std::unique_ptr<Expr>;

using Literal = std::variant<std::monostate, bool, Int, double, std::string>;  // monostate: none

struct Constant : Expr {
  Constant(int line_of, Literal literal) : Expr(ExprKind::kConstant, line_of), value(std::move(literal)) {}
  Literal value;
  int index = -1;  // among the constants of the program
};

struct Name : Expr {
  Name(int line_of, std::string name_of) : Expr(ExprKind::kName, line_of), name(std::move(name_of)) {}
  std::string name;
  SlotRef slot;
};

// Only as a target of set: namespace.attribute = ...
struct NamespaceAttribute : Expr {
  NamespaceAttribute(int line_of, std::string name_of, std::string attribute_of)
      : Expr(ExprKind::kNamespaceAttribute, line_of), name(std::move(name_of)), attribute(std::move(attribute_of)) {}
  std::string name;
  std::string attribute;
  SlotRef slot;
};

struct Items : Expr {  // tuple or list
  using Expr::Expr;
  std::vector<ExprPtr> items;
};

struct DictDisplay : Expr {
  explicit DictDisplay(int line_of) : Expr(ExprKind::kDict, line_of) {}
  std::vector<std::pair<ExprPtr, ExprPtr>> entries;
};

struct Unary : Expr {  // negate, plus, not
  using Expr::Expr;
  ExprPtr operand;
};

struct Binary : Expr {
  explicit Binary(int line_of) : Expr(ExprKind::kBinary, line_of) {}
  BinaryOperator op = BinaryOperator::kAdd;
  ExprPtr left, right;
};

struct Logical : Expr {
  explicit Logical(int line_of) : Expr(ExprKind::kLogical, line_of) {}
  bool is_and = false;
  ExprPtr left, right;
};

enum class Comparison : uint8_t { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kIn, kNotIn };

struct Compare : Expr {
  explicit Compare(int line_of) : Expr(ExprKind::kCompare, line_of) {}
  ExprPtr first;
  std::vector<std::pair<Comparison, ExprPtr>> rest;
};

struct Concat : Expr {
  explicit Concat(int line_of) : Expr(ExprKind::kConcat, line_of) {}
  std::vector<ExprPtr> parts;
};

struct Conditional : Expr {
  explicit Conditional(int line_of) : Expr(ExprKind::kConditional, line_of) {}
  ExprPtr condition, then, otherwise;  // otherwise may be null
};

struct Attribute : Expr {
  explicit Attribute(int line_of) : Expr(ExprKind::kAttribute, line_of) {}
  ExprPtr object;
  std::string name;
};

struct Item : Expr {
  explicit Item(int line_of) : Expr(ExprKind::kItem, line_of) {}
  ExprPtr object, key;
};

struct SliceItem : Expr {
  explicit SliceItem(int line_of) : Expr(ExprKind::kSlice, line_of) {}
  ExprPtr object, start, stop, step;  // bounds may be null
};

struct CallArguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr more_positional, more_named;  // *x and **x
};

struct CallExpr : Expr {
  explicit CallExpr(int line_of) : Expr(ExprKind::kCall, line_of) {}
  ExprPtr callee;
  CallArguments arguments;
};

// A filter or test. `builtin` is null where the name is unknown, which counts only if the node is evaluated.
struct Applied : Expr {
  using Expr::Expr;
  ExprPtr subject;  // null: the text captured by a filter block or set block
  std::string name;
  const Builtin* builtin = nullptr;
  CallArguments arguments;
};

enum class StatementKind : uint8_t {
  kOutput,
  kIf,
  kFor,
  kSet,
  kSetBlock,
  kWith,
  kScope,
  kFilterBlock,
  kMacro,
  kCallBlock,
  kBreak,
  kContinue,
};

struct Statement {
  Statement(StatementKind kind_of, int line_of) : kind(kind_of), line(line_of) {}
  virtual ~Statement() = default;
  StatementKind kind;
  int line;
};
using StatementPtr = std::unique_ptr<Statement>;
using Body = std::vector<StatementPtr>;

struct Output : Statement {
  explicit Output(int line_of) : Statement(StatementKind::kOutput, line_of) {}
  struct Piece {
    std::string data;  // where expr is null
    ExprPtr expr;
  };
  std::vector<Piece> pieces;
};

struct If : Statement {
  explicit If(int line_of) : Statement(StatementKind::kIf, line_of) {}
  struct Branch {
    ExprPtr condition;
    Body body;
  };
  std::vector<Branch> branches;
  Body otherwise;
};

struct For : Statement {
  explicit For(int line_of) : Statement(StatementKind::kFor, line_of) {}
  ExprPtr target, iterable, condition;  // condition may be null
  ExprPtr filter_target;                // the target again, as the condition's own activation sees it
  Body body, otherwise;
  bool recursive = false;
  int loop_slot = -1;  // -1: nothing in the body reads `loop`
  Scope body_scope, otherwise_scope, condition_scope;
  int condition_slots = 0;  // size of the activation the condition runs in
  int recursive_slots = 0;  // and of that of a recursive loop
};

struct Set : Statement {
  explicit Set(int line_of) : Statement(StatementKind::kSet, line_of) {}
  ExprPtr target, value;
};

struct SetBlock : Statement {
  explicit SetBlock(int line_of) : Statement(StatementKind::kSetBlock, line_of) {}
  ExprPtr target, filter;  // filter may be null
  Body body;
  Scope scope;
};

struct With : Statement {
  explicit With(int line_of) : Statement(StatementKind::kWith, line_of) {}
  std::vector<std::pair<ExprPtr, ExprPtr>> assignments;
  Body body;
  Scope scope;
};

struct ScopeBlock : Statement {  // {% generation %}
  explicit ScopeBlock(int line_of) : Statement(StatementKind::kScope, line_of) {}
  Body body;
  Scope scope;
};

struct FilterBlock : Statement {
  explicit FilterBlock(int line_of) : Statement(StatementKind::kFilterBlock, line_of) {}
  ExprPtr filter;
  Body body;
  Scope scope;
};

// What macros and the bodies of call blocks share.
struct MacroBody {
  std::string name;  // empty: the body of a call block
  std::vector<std::unique_ptr<Name>> parameters;
  std::vector<ExprPtr> defaults;  // of the last parameters
  Body body;
  Scope scope;
  int slots = 0;
  int caller_slot = -1, kwargs_slot = -1, varargs_slot = -1;  // -1: not used by the body
};

struct Macro : Statement {
  explicit Macro(int line_of) : Statement(StatementKind::kMacro, line_of) {}
  MacroBody macro;
  SlotRef slot;
};

struct CallBlock : Statement {
  explicit CallBlock(int line_of) : Statement(StatementKind::kCallBlock, line_of) {}
  ExprPtr call;
  MacroBody macro;
};

struct Program {
  Body body;
  Scope scope;
  int slots = 0;
  std::vector<Literal> constants;
};

}  // namespace quire::jinja
