#include "jinja/compiler.h"

#include <set>

#include "jinja/ast_walk.h"
#include "jinja/filters.h"
#include "jinja/is_tests.h"
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

  void store(Expr& target, bool as_parameter = false) {
    if (target.kind == ExprKind::kName) {
      const std::string& name = static_cast<const Name&>(target).name;
      if (as_parameter) {
        symbols_->declare_parameter(name);
      } else {
        symbols_->store(name);
      }
    } else if (target.kind == ExprKind::kNamespaceAttribute) {
      symbols_->load(static_cast<const NamespaceAttribute&>(target).name);
    } else {
      for_each_child(target, [&](Expr& child) { store(child, as_parameter); });
    }
  }

  void collect(const Body& body) {
    for (const auto& statement : body) collect(*statement);
  }

 private:
  void load(Expr& expr) {
    if (expr.kind == ExprKind::kName) symbols_->load(static_cast<const Name&>(expr).name);
    for_each_child(expr, [this](Expr& child) { load(child); });
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
      case StatementKind::kSetBlock:
        store(*static_cast<const SetBlock&>(statement).target);
        break;
      case StatementKind::kWith:
        for (const auto& [target, value] : static_cast<const With&>(statement).assignments) load(value);
        break;
      case StatementKind::kFilterBlock:
        load(static_cast<const FilterBlock&>(statement).filter);
        break;
      case StatementKind::kMacro:
        symbols_->store(static_cast<const Macro&>(statement).macro.name);
        break;
      case StatementKind::kCallBlock:
        load(static_cast<const CallBlock&>(statement).call);
        break;
      case StatementKind::kScope:
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

// Those of `names` that a body reads before it sets them.
std::set<std::string> undeclared(const Body& body, std::set<std::string> names) {
  std::set<std::string> found;
  for_each_name(body, [&](const Name& name, NameUse use) {
    if (use == NameUse::kStore) {
      names.erase(name.name);
    } else if (names.contains(name.name)) {
      found.insert(name.name);
    }
  });
  return found;
}

ExprPtr clone_target(const Expr& target) {
  if (target.kind == ExprKind::kName) {
    return std::make_unique<Name>(target.line, static_cast<const Name&>(target).name);
  }
  auto tuple = std::make_unique<Items>(ExprKind::kTuple, target.line);
  for (const auto& item : static_cast<const Items&>(target).items) tuple->items.push_back(clone_target(*item));
  return tuple;
}

Status error(int line, std::string message) {
  return invalid_argument("line " + std::to_string(line) + ": " + std::move(message));
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

    Frame inner(Symbols& scope) const { return {&scope, function, in_loop, false}; }
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
      case StatementKind::kSetBlock:
        return resolve_set_block(static_cast<SetBlock&>(statement), frame);
      case StatementKind::kWith:
        return resolve_with(static_cast<With&>(statement), frame);
      case StatementKind::kScope: {
        auto& block = static_cast<ScopeBlock&>(statement);
        return resolve_scope(block.body, block.scope, frame);
      }
      case StatementKind::kFilterBlock:
        return resolve_filter_block(static_cast<FilterBlock&>(statement), frame);
      case StatementKind::kMacro:
        static_cast<Macro&>(statement).slot = slot(frame, static_cast<Macro&>(statement).macro.name);
        return resolve_macro(static_cast<Macro&>(statement).macro, statement.line, frame);
      case StatementKind::kCallBlock:
        QUIRE_RETURN_IF_ERROR(resolve(static_cast<CallBlock&>(statement).call, frame));
        return resolve_macro(static_cast<CallBlock&>(statement).macro, statement.line, frame);
      case StatementKind::kBreak:
      case StatementKind::kContinue:
        if (frame.in_loop) return Status();
        return error(statement.line, "'break' and 'continue' belong into a loop");
    }
    return Status();
  }

  static SlotRef slot(const Frame& frame, const std::string& name) {
    return frame.symbols->resolve(name, *frame.function);
  }

  Status resolve(const ExprPtr& expr, const Frame& frame) { return expr == nullptr ? Status() : resolve(*expr, frame); }

  Status resolve(Expr& expr, const Frame& frame) {
    if (expr.kind == ExprKind::kName) {
      static_cast<Name&>(expr).slot = slot(frame, static_cast<Name&>(expr).name);
    } else if (expr.kind == ExprKind::kNamespaceAttribute) {
      static_cast<NamespaceAttribute&>(expr).slot = slot(frame, static_cast<NamespaceAttribute&>(expr).name);
    } else if (expr.kind == ExprKind::kFilter || expr.kind == ExprKind::kTest) {
      auto& applied = static_cast<Applied&>(expr);
      const bool is_filter = expr.kind == ExprKind::kFilter;
      applied.builtin = is_filter ? find_filter(applied.name) : find_test(applied.name);
      if (applied.builtin == nullptr && !frame.optional) {
        return unsupported("line " + std::to_string(expr.line) + ": there is no " + (is_filter ? "filter" : "test") +
                           " '" + applied.name + "'");
      }
    }
    Frame inner = frame;
    inner.optional = frame.optional || expr.kind == ExprKind::kConditional;
    Status status;
    for_each_child(expr, [&](Expr& child) {
      if (status.ok()) status = resolve(child, inner);
    });
    return status;
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
    const Frame inner{&symbols, &function, false, false};
    QUIRE_RETURN_IF_ERROR(resolve(node.filter_target, inner));
    QUIRE_RETURN_IF_ERROR(resolve(node.condition, inner));
    node.condition_scope = symbols.scope();
    node.condition_slots = function.size();
    return Status();
  }

  Status resolve_for(For& node, const Frame& frame) {
    Status reserved;
    for_each_name(node, [&reserved](const Name& name, NameUse use) {
      if (use == NameUse::kStore && name.name == "loop")
        reserved = error(name.line, "'loop' cannot be assigned to in a loop");
    });
    QUIRE_RETURN_IF_ERROR(reserved);
    QUIRE_RETURN_IF_ERROR(resolve(node.iterable, frame));
    QUIRE_RETURN_IF_ERROR(resolve_condition(node, frame));
    FunctionSlots own(frame.function);
    FunctionSlots& function = node.recursive ? own : *frame.function;
    Symbols body(frame.symbols, function), otherwise(frame.symbols, function);
    if (node.recursive || !undeclared(node.body, {"loop"}).empty()) node.loop_slot = body.declare_parameter("loop");
    Collector body_collector(body);
    body_collector.store(*node.target, true);
    body_collector.collect(node.body);
    Collector(otherwise).collect(node.otherwise);
    Frame inner{&body, &function, true, false};
    QUIRE_RETURN_IF_ERROR(resolve(node.target, inner));
    QUIRE_RETURN_IF_ERROR(resolve(node.body, inner));
    node.body_scope = body.scope();
    inner.symbols = &otherwise;
    inner.in_loop = frame.in_loop && !node.recursive;
    QUIRE_RETURN_IF_ERROR(resolve(node.otherwise, inner));
    node.otherwise_scope = otherwise.scope();
    node.recursive_slots = own.size();
    return Status();
  }

  Status resolve_scope(Body& body, Scope& scope, const Frame& frame) {
    Symbols symbols(frame.symbols, *frame.function);
    Collector(symbols).collect(body);
    QUIRE_RETURN_IF_ERROR(resolve(body, frame.inner(symbols)));
    scope = symbols.scope();
    return Status();
  }

  Status resolve_set_block(SetBlock& node, const Frame& frame) {
    QUIRE_RETURN_IF_ERROR(resolve(node.target, frame));
    Symbols symbols(frame.symbols, *frame.function);
    Collector collector(symbols);
    collector.collect(node.body);
    collector.load(node.filter);
    QUIRE_RETURN_IF_ERROR(resolve(node.body, frame.inner(symbols)));
    QUIRE_RETURN_IF_ERROR(resolve(node.filter, frame.inner(symbols)));
    node.scope = symbols.scope();
    return Status();
  }

  Status resolve_filter_block(FilterBlock& node, const Frame& frame) {
    Symbols symbols(frame.symbols, *frame.function);
    Collector collector(symbols);
    collector.collect(node.body);
    collector.load(node.filter);
    QUIRE_RETURN_IF_ERROR(resolve(node.body, frame.inner(symbols)));
    QUIRE_RETURN_IF_ERROR(resolve(node.filter, frame.inner(symbols)));
    node.scope = symbols.scope();
    return Status();
  }

  Status resolve_with(With& node, const Frame& frame) {
    Symbols symbols(frame.symbols, *frame.function);
    Collector collector(symbols);
    for (const auto& [target, value] : node.assignments) collector.store(*target, true);
    collector.collect(node.body);
    for (const auto& [target, value] : node.assignments) {
      QUIRE_RETURN_IF_ERROR(resolve(value, frame));
      QUIRE_RETURN_IF_ERROR(resolve(target, frame.inner(symbols)));
    }
    QUIRE_RETURN_IF_ERROR(resolve(node.body, frame.inner(symbols)));
    node.scope = symbols.scope();
    return Status();
  }

  Status resolve_macro(MacroBody& macro, int line, const Frame& frame) {
    FunctionSlots function(frame.function);
    Symbols symbols(frame.symbols, function);
    Collector collector(symbols);
    bool own_caller = false, own_kwargs = false, own_varargs = false;
    const size_t required = macro.parameters.size() - macro.defaults.size();
    const auto special = undeclared(macro.body, {"caller", "kwargs", "varargs"});
    for (size_t i = 0; i < macro.parameters.size(); ++i) {
      const std::string& name = macro.parameters[i]->name;
      symbols.declare_parameter(name);
      if (name == "caller" && i < required && special.contains(name)) {
        return error(line, "the parameter 'caller' of a macro needs a default");
      }
      own_caller = own_caller || name == "caller";
      own_kwargs = own_kwargs || name == "kwargs";
      own_varargs = own_varargs || name == "varargs";
    }
    for (const auto& value : macro.defaults) collector.load(value);
    collector.collect(macro.body);
    if (special.contains("caller") && !own_caller) macro.caller_slot = symbols.declare_parameter("caller");
    if (special.contains("kwargs") && !own_kwargs) macro.kwargs_slot = symbols.declare_parameter("kwargs");
    if (special.contains("varargs") && !own_varargs) macro.varargs_slot = symbols.declare_parameter("varargs");
    const Frame inner{&symbols, &function, false, false};
    for (auto& parameter : macro.parameters) QUIRE_RETURN_IF_ERROR(resolve(*parameter, inner));
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
  QUIRE_ASSIGN_OR_RETURN(Program program, parse(source));
  QUIRE_RETURN_IF_ERROR(Resolver().resolve(program));
  return program;
}

}  // namespace quire::jinja
