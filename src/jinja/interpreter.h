// Runs a program: walks its tree, writes its output.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "jinja/ast.h"
#include "jinja/iteration.h"
#include "jinja/runtime.h"

namespace quire::jinja {

// The variables of one running function of a template; see FunctionSlots.
class Activation : public CyclicObject {
 public:
  Activation(Heap& heap, int slots, Ref<Activation> enclosing)
      : CyclicObject(heap), slots_(static_cast<size_t>(slots)), enclosing_(std::move(enclosing)) {
    charge(slots_.size() * sizeof(Value));
  }
  Value& slot(int index) { return slots_[static_cast<size_t>(index)]; }
  Value& at(SlotRef ref) {
    Activation* activation = this;
    for (int i = 0; i < ref.hops; ++i) activation = activation->enclosing_.get();
    return activation->slot(ref.index);
  }
  void drop_references() override {
    slots_.clear();
    enclosing_ = Ref<Activation>();
  }

 private:
  std::vector<Value> slots_;
  Ref<Activation> enclosing_;
};

using Variables = std::vector<std::pair<std::string, Value>>;

// One rendering. `runtime` and `program` must outlive it.
class Interpreter {
 public:
  Interpreter(Runtime& runtime, const Program& program, Variables variables);

  // The rendered template. A failure's message begins with the line it happened on.
  Result<Text> run();

  // For macros, which call back from inside a rendering.
  Result<Value> call_macro(const Macro& macro, const Ref<Activation>& enclosing, Arguments arguments);

 private:
  enum class Flow : uint8_t { kNext, kBreak, kContinue };

  // Statements: interpreter_statements.cc.
  Result<Flow> execute(const Body& body, Activation& frame);
  Result<Flow> execute(const Statement& statement, Activation& frame);
  Result<Flow> execute_kind(const Statement& statement, Activation& frame);
  Status write(const Output& node, Activation& frame);
  Result<Flow> execute_if(const If& node, Activation& frame);
  Result<Flow> execute_block(const Block& node, Activation& frame);
  Status deliver(const Block& node, Value text, Activation& frame);
  Status assign(const Expr& target, Value value, Activation& frame);
  void enter(const Scope& scope, Activation& frame);
  static void leave(const Scope& scope, Activation& frame);
  Value look_up(const std::string& name);

  // Loops and macros: interpreter_calls.cc.
  Result<Flow> execute_for(const For& node, Activation& frame);
  Value filtered(const For& node, const Value& iterable, Activation& frame);
  Result<Value> rebuild_target(const Expr& target, Activation& frame);
  Status bind_macro(const Macro& macro, Arguments& arguments, Activation& frame);

  // Expressions: interpreter_expressions.cc.
  Result<Value> evaluate(const Expr& expr, Activation& frame);
  Result<Value> evaluate_kind(const Expr& expr, Activation& frame);
  Value constant(int index);
  Result<std::vector<Value>> evaluate_children(const Expr& node, Activation& frame);
  Result<Value> evaluate_dict(const Expr& node, Activation& frame);
  Result<bool> compare_pair(Comparison comparison, const Value& left, const Value& right);
  Result<Value> evaluate_concat(const Expr& node, Activation& frame);
  Result<Value> evaluate_conditional(const Expr& node, Activation& frame);
  Result<Value> evaluate_applied(const Expr& node, Activation& frame);
  Result<Arguments> evaluate_arguments(const Expr& node, Activation& frame);

  Status locate(Status status, int line);

  // Sends the output to a string of its own as long as it lives.
  class Capture {
   public:
    explicit Capture(Interpreter& interpreter) : interpreter_(interpreter), outer_(interpreter.out_) {
      interpreter.out_ = &text_;
    }
    ~Capture() { interpreter_.out_ = outer_; }
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;
    Result<Value> take() { return interpreter_.runtime_.string(std::move(text_)); }

   private:
    Interpreter& interpreter_;
    TextBuilder* outer_;
    TextBuilder text_;
  };

  Runtime& runtime_;
  const Program& program_;
  Variables variables_;
  std::vector<Value> constants_;
  TextBuilder* out_ = nullptr;
  const Value* captured_ = nullptr;  // the subject of the filter of a block
  int error_line_ = 0;
};

// A macro as a value that can be called.
Value make_macro(Interpreter& interpreter, const Macro& macro, Activation& enclosing);

}  // namespace quire::jinja
