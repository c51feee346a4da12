// Loops and macros.
#include "jinja/interpreter.h"

#include <algorithm>

#include "jinja/attributes.h"
#include "jinja/compare.h"
#include "jinja/loop.h"

namespace quire::jinja {
namespace {

class MacroValue : public Native {
 public:
  MacroValue(Heap& heap, Interpreter& interpreter, const MacroBody& macro, Ref<Activation> enclosing)
      : Native(heap), interpreter_(interpreter), macro_(macro), enclosing_(std::move(enclosing)) {}

  std::string_view type_name() const override { return "Macro"; }
  std::string repr() const override {
    return macro_.name.empty() ? "<Macro anonymous>" : "<Macro '" + macro_.name + "'>";
  }
  bool callable() const override { return true; }
  Result<Value> call(Runtime&, Arguments arguments) override {
    return interpreter_.call_macro(macro_, enclosing_, std::move(arguments));
  }
  Result<std::optional<Value>> attribute(Runtime& runtime, std::string_view name) override {
    if (name == "name") {
      return std::optional<Value>(macro_.name.empty() ? Value::none() : runtime.string(macro_.name));
    }
    if (name == "catch_kwargs") return std::optional<Value>(Value::boolean(macro_.kwargs_slot >= 0));
    if (name == "catch_varargs") return std::optional<Value>(Value::boolean(macro_.varargs_slot >= 0));
    if (name == "caller") return std::optional<Value>(Value::boolean(macro_.caller_slot >= 0));
    if (name != "arguments") return std::optional<Value>();
    std::vector<Value> names;
    for (const auto& parameter : macro_.parameters) names.push_back(runtime.string(parameter->name));
    return std::optional<Value>(make_tuple(runtime.heap(), std::move(names)));
  }
  void drop_references() override { enclosing_ = Ref<Activation>(); }

 private:
  Interpreter& interpreter_;
  const MacroBody& macro_;
  Ref<Activation> enclosing_;
};

}  // namespace

Value make_macro(Interpreter& interpreter, const MacroBody& macro, Activation& enclosing) {
  return Value(Kind::kNative, enclosing.heap().make<MacroValue>(interpreter, macro, Ref<Activation>(&enclosing)));
}

// Puts the arguments into the slots of the parameters; those not given stay missing.
Status Interpreter::bind_macro(const MacroBody& macro, Arguments& arguments, Activation& frame) {
  const std::string name = macro.name.empty() ? "caller" : macro.name;
  // Not a structured binding: Clang 14 lets no lambda capture one.
  auto& positional = arguments.positional;
  auto& named = arguments.named;
  const auto take_named = [&named](std::string_view wanted) {
    const auto at =
        std::find_if(named.begin(), named.end(), [&](const auto& row) { return row.first.bytes == wanted; });
    if (at == named.end()) return Value();
    Value value = std::move(at->second);
    named.erase(at);
    return value;
  };
  const size_t count = macro.parameters.size();
  for (size_t i = 0; i < count; ++i) {
    const Name& parameter = *macro.parameters[i];
    frame.at(parameter.slot) = i < positional.size() ? positional[i] : take_named(parameter.name);
  }
  if (macro.caller_slot >= 0) {
    const Value caller = take_named("caller");
    const bool none = caller.is(Kind::kMissing) || caller.is(Kind::kNone);
    frame.slot(macro.caller_slot) = none ? runtime_.undefined("No caller defined") : caller;
  }
  if (macro.kwargs_slot >= 0) {
    Dict::Entries entries;
    for (auto& [key, value] : named) entries.emplace_back(Value::string(runtime_.heap(), key), std::move(value));
    frame.slot(macro.kwargs_slot) = make_dict(runtime_.heap(), std::move(entries));
  } else if (!named.empty()) {
    return invalid_argument("macro '" + name + "' takes no keyword argument '" + named[0].first.bytes + "'");
  }
  if (macro.varargs_slot >= 0) {
    std::vector<Value> rest;
    for (size_t i = count; i < positional.size(); ++i) rest.push_back(std::move(positional[i]));
    frame.slot(macro.varargs_slot) = make_tuple(runtime_.heap(), std::move(rest));
  } else if (positional.size() > count) {
    return invalid_argument("macro '" + name + "' takes at most " + std::to_string(count) + " arguments");
  }
  return Status();
}

Status Interpreter::fill_defaults(const MacroBody& macro, Activation& frame) {
  const size_t required = macro.parameters.size() - macro.defaults.size();
  for (size_t i = 0; i < macro.parameters.size(); ++i) {
    const Name& parameter = *macro.parameters[i];
    if (!frame.at(parameter.slot).is(Kind::kMissing)) continue;
    Value value;
    if (i < required) {
      value = runtime_.undefined("parameter '" + parameter.name + "' was not provided");
    } else {
      QUIRE_ASSIGN_OR_RETURN(value, evaluate(*macro.defaults[i - required], frame));
    }
    frame.at(parameter.slot) = std::move(value);
  }
  return Status();
}

Result<Value> Interpreter::call_macro(const MacroBody& macro, const Ref<Activation>& enclosing, Arguments arguments) {
  const DepthGuard guard(runtime_);
  QUIRE_RETURN_IF_ERROR(guard.status());
  const auto frame = runtime_.heap().make<Activation>(macro.slots, enclosing);
  QUIRE_RETURN_IF_ERROR(bind_macro(macro, arguments, *frame));
  enter(macro.scope, *frame);
  QUIRE_RETURN_IF_ERROR(fill_defaults(macro, *frame));
  Capture capture(*this);
  QUIRE_RETURN_IF_ERROR(execute(macro.body, *frame).status());
  return capture.take();
}

// The value of a loop target after an item was assigned to it: what the condition of a loop lets through.
Result<Value> Interpreter::rebuild_target(const Expr& target, Activation& frame) {
  if (target.kind == ExprKind::kName) return frame.at(static_cast<const Name&>(target).slot);
  std::vector<Value> items;
  for (const auto& item : static_cast<const Items&>(target).items) {
    QUIRE_ASSIGN_OR_RETURN(items.emplace_back(), rebuild_target(*item, frame));
  }
  return make_tuple(runtime_.heap(), std::move(items));
}

// The items that pass the loop's condition, each asked for only when the loop gets to it.
Value Interpreter::filtered(const LoopRun& run) {
  const For& node = run.node;
  const Value iterable = run.iterable;
  const auto frame = runtime_.heap().make<Activation>(node.condition_slots, run.enclosing);
  Ref<Iterator> source;
  return make_generator(runtime_.heap(), [=, this, &node](Runtime& runtime) mutable -> Result<std::optional<Value>> {
    if (!source) {
      enter(node.condition_scope, *frame);
      QUIRE_ASSIGN_OR_RETURN(source, iterate(runtime, iterable));
    }
    while (true) {
      QUIRE_ASSIGN_OR_RETURN(auto item, source->next(runtime));
      if (!item) return item;
      QUIRE_RETURN_IF_ERROR(assign(*node.filter_target, std::move(*item), *frame));
      QUIRE_ASSIGN_OR_RETURN(const Value passes, evaluate(*node.condition, *frame));
      if (!truthy(passes)) continue;
      QUIRE_ASSIGN_OR_RETURN(item, rebuild_target(*node.filter_target, *frame));
      return item;
    }
  });
}

Result<Interpreter::Flow> Interpreter::run_loop(const LoopRun& run, Activation& frame) {
  const For& node = run.node;
  const Value iterable = node.condition != nullptr ? filtered(run) : run.iterable;
  QUIRE_ASSIGN_OR_RETURN(auto items, iterate(runtime_, iterable));
  Ref<Loop> loop;
  if (node.loop_slot >= 0) {
    LoopRecursion recursion;
    if (node.recursive) recursion = {this, &node, run.enclosing, run.depth};
    loop = runtime_.heap().make<Loop>(iterable, items, recursion);
  }
  bool nothing_done = true;  // as jinja2 has it: no body ran to its end
  while (true) {
    QUIRE_ASSIGN_OR_RETURN(auto item, loop ? loop->advance(runtime_) : items->next(runtime_));
    if (!item) break;
    QUIRE_RETURN_IF_ERROR(assign(*node.target, std::move(*item), frame));
    if (loop) frame.slot(node.loop_slot) = Value(Kind::kNative, loop);
    enter(node.body_scope, frame);
    QUIRE_ASSIGN_OR_RETURN(const Flow flow, execute(node.body, frame));
    if (flow == Flow::kBreak) break;
    if (flow == Flow::kNext) nothing_done = false;
  }
  leave(node.body_scope, frame);
  if (!nothing_done || node.otherwise.empty()) return Flow::kNext;
  enter(node.otherwise_scope, frame);
  QUIRE_ASSIGN_OR_RETURN(const Flow flow, execute(node.otherwise, frame));
  if (flow == Flow::kNext) leave(node.otherwise_scope, frame);
  return flow;
}

Result<Interpreter::Flow> Interpreter::execute_for(const For& node, Activation& frame) {
  QUIRE_ASSIGN_OR_RETURN(Value iterable, evaluate(*node.iterable, frame));
  if (!node.recursive) return run_loop({node, std::move(iterable), Ref<Activation>(&frame), 0}, frame);
  QUIRE_ASSIGN_OR_RETURN(const Value text, run_recursive_loop(node, Ref<Activation>(&frame), iterable, 0));
  out_->append(text.text());
  return Flow::kNext;
}

Result<Value> Interpreter::run_recursive_loop(const For& node, const Ref<Activation>& enclosing, const Value& iterable,
                                              int depth) {
  const DepthGuard guard(runtime_);
  QUIRE_RETURN_IF_ERROR(guard.status());
  const auto frame = runtime_.heap().make<Activation>(node.recursive_slots, enclosing);
  Capture capture(*this);
  QUIRE_RETURN_IF_ERROR(run_loop({node, iterable, enclosing, depth}, *frame).status());
  return capture.take();
}

}  // namespace quire::jinja
