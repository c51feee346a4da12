#include "jinja/compiler.h"

#include "jinja/filters.h"
#include "jinja/is_tests.h"
#include "jinja/known.h"
#include "jinja/parser.h"
#include "jinja/symbols.h"
#include "unicode/utf8.h"

namespace quire::jinja {
namespace {

// First pass over one scope: which names it reads and sets. Nested scopes are left to their own pass.
class Collector {
 public:
  explicit Collector(Symbols& symbols) : symbols_(&symbols) {}

  void load(const ExprPtr& expr) {
    if (expr != nullptr) load(*expr);
  }

  void store(const Expr& target, bool as_parameter = false) {
    if (target.kind == ExprKind::kNamespaceAttribute) return load(target.children[0]);
    if (target.kind == ExprKind::kName) {
      if (as_parameter) {
        symbols_->declare_parameter(target.name);
      } else {
        symbols_->store(target.name);
      }
    }
    target.for_each_child([&](const Expr& child) { store(child, as_parameter); });
  }

  void collect(const Body& body) {
    for (const auto& statement : body) collect(*statement);
  }

 private:
  void load(const Expr& expr) {
    if (expr.kind == ExprKind::kName) symbols_->load(expr.name);
    expr.for_each_child([this](const Expr& child) { load(child); });
  }

  void collect(const Statement& statement) {
    switch (statement.kind) {
      case StatementKind::kOutput:
        for (const auto& piece : static_cast<const Output&>(statement).pieces) load(piece.expr);
        break;
      case StatementKind::kIf:
        collect_if(static_cast<const If&>(statement));
        break;
      case StatementKind::kFor:
        load(static_cast<const For&>(statement).iterable);
        break;
      case StatementKind::kSet:
        load(static_cast<const Set&>(statement).value);
        store(*static_cast<const Set&>(statement).target);
        break;
      case StatementKind::kBlock: {
        // The filter of a set block is read in the block's scope only.
        const auto& block = static_cast<const Block&>(statement);
        if (block.target != nullptr) {
          store(*block.target);
        } else {
          load(block.filter);
        }
        break;
      }
      case StatementKind::kMacro:
        symbols_->store(static_cast<const Macro&>(statement).name);
        break;
      case StatementKind::kBreak:
      case StatementKind::kContinue:
        break;
    }
  }

  // An elif is an `if` of its own, inside a branch that all of them share.
  void collect_if(const If& node) {
    Symbols* const outer = symbols_;
    load(node.branches[0].condition);
    Symbols body = outer->branch(), elifs = outer->branch(), otherwise = outer->branch();
    symbols_ = &body;
    collect(node.branches[0].body);
    symbols_ = &elifs;
    for (size_t i = 1; i < node.branches.size(); ++i) collect_elif(node.branches[i]);
    symbols_ = &otherwise;
    collect(node.otherwise);
    symbols_ = outer;
    outer->join_branches({&body, &elifs, &otherwise});
  }

  void collect_elif(const If::Branch& branch) {
    Symbols* const outer = symbols_;
    load(branch.condition);
    Symbols body = outer->branch();
    symbols_ = &body;
    collect(branch.body);
    symbols_ = outer;
    outer->join_branches({&body});
  }

  Symbols* symbols_;
};

ExprPtr clone_target(const Expr& target) {
  auto clone = std::make_unique<Expr>(target.kind, target.line, target.name);
  target.for_each_child([&clone](const Expr& child) { clone->add(clone_target(child)); });
  return clone;
}

Status at_line(int line, const Status& status) {
  return Status(status.code(), "line " + std::to_string(line) + ": " + status.message());
}

// Second pass: gives every name its slot, scope by scope.
class Resolver {
 public:
  Status resolve(Program& program) {
    FunctionSlots function(nullptr);
    Symbols symbols(nullptr, function);
    Collector(symbols).collect(program.body);
    QUIRE_RETURN_IF_ERROR(resolve(program.body, {&symbols, &function, false, false}));
    program.scope = symbols.scope();
    program.slots = function.size();
    return Status();
  }

 private:
  struct Frame {
    Symbols* symbols;
    FunctionSlots* function;  // whose activation the code runs in
    bool in_loop;             // break and continue are allowed
    bool optional;            // may never run: unknown filters and tests are allowed
    bool in_macro = false;
  };

  Status resolve(Body& body, const Frame& frame) {
    for (auto& statement : body) QUIRE_RETURN_IF_ERROR(resolve(*statement, frame));
    return Status();
  }

  Status resolve(Statement& statement, const Frame& frame) {
    switch (statement.kind) {
      case StatementKind::kOutput:
        for (auto& piece : static_cast<Output&>(statement).pieces) QUIRE_RETURN_IF_ERROR(resolve(piece.expr, frame));
        return Status();
      case StatementKind::kIf:
        return resolve_if(static_cast<If&>(statement), frame);
      case StatementKind::kFor:
        return resolve_for(static_cast<For&>(statement), frame);
      case StatementKind::kSet:
        QUIRE_RETURN_IF_ERROR(resolve(static_cast<Set&>(statement).value, frame));
        return resolve(static_cast<Set&>(statement).target, frame);
      case StatementKind::kBlock:
        return resolve_block(static_cast<Block&>(statement), frame);
      case StatementKind::kMacro:
        return resolve_macro(static_cast<Macro&>(statement), frame);
      case StatementKind::kBreak:
      case StatementKind::kContinue:
        if (frame.in_loop) return Status();
        return at_line(statement.line, invalid_argument("'break' and 'continue' belong into a loop"));
    }
    return Status();
  }

  Status resolve(const ExprPtr& expr, const Frame& frame) { return expr == nullptr ? Status() : resolve(*expr, frame); }

  Status resolve(Expr& expr, const Frame& frame) {
    if (expr.kind == ExprKind::kName) {
      expr.slot = frame.symbols->resolve(expr.name, *frame.function);
      const bool is_outer = expr.slot.hops > 0 || frame.symbols->is_from_context(expr.name);
      if (is_outer && frame.in_macro && is_refused_in_macro(expr.name)) {
        return at_line(expr.line, not_known("variable of a macro", expr.name));
      }
      if (is_refused_global(expr.name) && frame.symbols->is_from_context(expr.name)) {
        return at_line(expr.line, not_known("function", expr.name));
      }
    } else if (expr.kind == ExprKind::kFilter || expr.kind == ExprKind::kTest) {
      const bool is_filter = expr.kind == ExprKind::kFilter;
      expr.builtin = is_filter ? find_filter(expr.name) : find_test(expr.name);
      if (expr.builtin == nullptr && !frame.optional) {
        return at_line(expr.line, not_known(is_filter ? "filter" : "test", expr.name));
      }
    }
    Frame inner = frame;
    inner.optional = frame.optional || expr.kind == ExprKind::kConditional;
    for (const ExprPtr& child : expr.children) QUIRE_RETURN_IF_ERROR(resolve(child, inner));
    return Status();
  }

  Status resolve_if(If& node, Frame frame) {
    frame.optional = true;
    for (auto& branch : node.branches) {
      QUIRE_RETURN_IF_ERROR(resolve(branch.condition, frame));
      QUIRE_RETURN_IF_ERROR(resolve(branch.body, frame));
    }
    return resolve(node.otherwise, frame);
  }

  Status resolve_condition(For& node, const Frame& frame) {
    if (node.condition == nullptr) return Status();
    FunctionSlots function(frame.function);
    Symbols symbols(frame.symbols, function);
    node.filter_target = clone_target(*node.target);
    Collector collector(symbols);
    collector.store(*node.filter_target, true);
    collector.load(node.condition);
    const Frame inner{&symbols, &function, false, false, frame.in_macro};
    QUIRE_RETURN_IF_ERROR(resolve(node.filter_target, inner));
    QUIRE_RETURN_IF_ERROR(resolve(node.condition, inner));
    node.condition_scope = symbols.scope();
    node.condition_slots = function.size();
    return Status();
  }

  Status resolve_for(For& node, const Frame& frame) {
    QUIRE_RETURN_IF_ERROR(resolve(node.iterable, frame));
    QUIRE_RETURN_IF_ERROR(resolve_condition(node, frame));
    Symbols body(frame.symbols, *frame.function), otherwise(frame.symbols, *frame.function);
    node.loop_slot = body.declare_parameter("loop");
    Collector body_collector(body);
    body_collector.store(*node.target, true);
    body_collector.collect(node.body);
    Collector(otherwise).collect(node.otherwise);
    Frame inner{&body, frame.function, true, false, frame.in_macro};
    QUIRE_RETURN_IF_ERROR(resolve(node.target, inner));
    QUIRE_RETURN_IF_ERROR(resolve(node.body, inner));
    node.body_scope = body.scope();
    inner.symbols = &otherwise;
    inner.in_loop = frame.in_loop;
    QUIRE_RETURN_IF_ERROR(resolve(node.otherwise, inner));
    node.otherwise_scope = otherwise.scope();
    return Status();
  }

  Status resolve_block(Block& node, const Frame& frame) {
    QUIRE_RETURN_IF_ERROR(resolve(node.target, frame));
    Symbols symbols(frame.symbols, *frame.function);
    Collector collector(symbols);
    collector.collect(node.body);
    collector.load(node.filter);
    const Frame inner{&symbols, frame.function, frame.in_loop, false, frame.in_macro};
    QUIRE_RETURN_IF_ERROR(resolve(node.body, inner));
    QUIRE_RETURN_IF_ERROR(resolve(node.filter, inner));
    node.scope = symbols.scope();
    return Status();
  }

  Status resolve_macro(Macro& macro, const Frame& frame) {
    macro.slot = frame.symbols->resolve(macro.name, *frame.function);
    FunctionSlots function(frame.function);
    Symbols symbols(frame.symbols, function);
    Collector collector(symbols);
    for (const auto& parameter : macro.parameters) symbols.declare_parameter(parameter->name);
    for (const auto& value : macro.defaults) collector.load(value);
    collector.collect(macro.body);
    Frame inner{&symbols, &function, false, false};
    inner.in_macro = true;
    for (auto& parameter : macro.parameters) QUIRE_RETURN_IF_ERROR(resolve(parameter, inner));
    for (auto& value : macro.defaults) QUIRE_RETURN_IF_ERROR(resolve(value, inner));
    QUIRE_RETURN_IF_ERROR(resolve(macro.body, inner));
    macro.scope = symbols.scope();
    macro.slots = function.size();
    return Status();
  }
};

}  // namespace

Result<Program> compile(std::string_view source) {
  if (source.size() > kMaxSourceBytes) {
    return out_of_range("the template has " + std::to_string(source.size()) + " bytes; quire takes at most " +
                        std::to_string(kMaxSourceBytes));
  }
  if (!is_valid_utf8(source)) return invalid_argument("the template is not UTF-8");
  QUIRE_ASSIGN_OR_RETURN(Program program, Parser(source).run());
  QUIRE_RETURN_IF_ERROR(Resolver().resolve(program));
  return program;
}

}  // namespace quire::jinja
