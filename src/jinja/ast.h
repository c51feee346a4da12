// Syntax tree of a template. Nodes are plain data: the parser builds them, scope analysis (compiler.h) fills in where
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

// What an expression is, and its children in order; "?": the child may be null.
enum class ExprKind : uint8_t {
  kConstant,            // none
  kName,                // none
  kNamespaceAttribute,  // the name it is an attribute of; only as a target of set
  kTuple,               // items
  kList,                // items
  kDict,                // key, value, key, value, ...
  kNegate,              // operand
  kNot,                 // operand
  kBinary,              // left, right
  kCompare,             // left, right
  kAnd,                 // left, right
  kOr,                  // left, right
  kConcat,              // parts
  kConditional,         // condition, then, otherwise?
  kAttribute,           // object
  kItem,                // object, key
  kSlice,               // object, start?, stop?, step?
  kCall,                // callee, arguments
  kFilter,              // subject? (null: the text that a block captured), arguments
  kTest,                // subject, arguments
  kKeyword,             // value of a named argument; only among arguments
};

enum class Comparison : uint8_t { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kIn, kNotIn };

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct Expr {
  Expr(ExprKind kind_of, int line_of, std::string name_of = {})
      : kind(kind_of), line(line_of), name(std::move(name_of)) {}
  void add(ExprPtr child) {
    if (child != nullptr && child->height >= height) height = child->height + 1;
    children.push_back(std::move(child));
  }
  template <typename Visitor>
  void for_each_child(Visitor visit) const {
    for (const ExprPtr& child : children) {
      if (child != nullptr) visit(*child);
    }
  }

  ExprKind kind;
  BinaryOperator op = BinaryOperator::kAdd;    // kBinary
  Comparison comparison = Comparison::kEqual;  // kCompare
  int line;
  int height = 1;     // levels of nodes below and including this one
  int constant = -1;  // kConstant: its place among the constants of the program
  SlotRef slot;       // kName
  const Builtin* builtin =
      nullptr;       // kFilter, kTest; null where the name is unknown, which counts only if it is reached
  std::string name;  // of a variable, attribute, filter, test or argument
  std::vector<ExprPtr> children;
};

using Literal = std::variant<std::monostate, bool, Int, double, std::string>;  // monostate: none

enum class StatementKind : uint8_t { kOutput, kIf, kFor, kSet, kBlock, kMacro, kBreak, kContinue };

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
  int loop_slot = -1;  // of the variable `loop`
  Scope body_scope, otherwise_scope, condition_scope;
  int condition_slots = 0;  // size of the activation the condition runs in
};

struct Set : Statement {
  explicit Set(int line_of) : Statement(StatementKind::kSet, line_of) {}
  ExprPtr target, value;
};

// A body in a scope of its own. {% set target %} and {% filter f %} capture what it writes: it goes through the filter,
// if there is one, and into the target or, without one, to the output. {% generation %} has neither and captures nothing.
struct Block : Statement {
  explicit Block(int line_of) : Statement(StatementKind::kBlock, line_of) {}
  bool captures() const { return target != nullptr || filter != nullptr; }
  ExprPtr target, filter;
  Body body;
  Scope scope;
};

struct Macro : Statement {
  explicit Macro(int line_of) : Statement(StatementKind::kMacro, line_of) {}
  std::string name;
  SlotRef slot;
  std::vector<ExprPtr> parameters;  // names
  std::vector<ExprPtr> defaults;    // of the last parameters
  Body body;
  Scope scope;
  int slots = 0;
};

struct Program {
  Body body;
  Scope scope;
  int slots = 0;
  std::vector<Literal> constants;
};

}  // namespace quire::jinja
