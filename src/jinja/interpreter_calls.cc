// Loops and macros.
#include <algorithm>

#include "jinja/compare.h"
#include "jinja/interpreter.h"
#include "jinja/known.h"
#include "jinja/loop.h"

namespace quire::jinja {
namespace {

class MacroValue : public Native {
 public:
  MacroValue(Heap& heap, Interpreter& interpreter, const Macro& macro, Ref<Activation> enclosing)
      : Native(heap), interpreter_(interpreter), macro_(macro), enclosing_(std::move(enclosing)) {}

  std::string_view type_name() const override { return "Macro"; }
  std::string repr() const override { return "<Macro '" + macro_.name + "'>"; }
  Result<Value> call(Runtime&, Arguments arguments) override {
    return interpreter_.call_macro(macro_, enclosing_, std::move(arguments));
  }
  Result<std::optional<Value>> attribute(Runtime&, std::string_view name) override {
    if (is_refused_macro_attribute(name)) return not_known("attribute of a macro", name);
    return std::optional<Value>();
  }
  void drop_references() override { enclosing_ = Ref<Activation>(); }

 private:
  Interpreter& interpreter_;
  const Macro& macro_;
  Ref<Activation> enclosing_;
};

}  // namespace

Value make_macro(Interpreter& interpreter, const Macro& macro, Activation& enclosing) {
  return Value(Kind::kNative, enclosing.heap().make<MacroValue>(interpreter, macro, Ref<Activation>(&enclosing)));
}

// Puts the arguments into the slots of the parameters, then evaluates the defaults of those that are not given.
Status Interpreter::bind_macro(const Macro& macro, Arguments& arguments, Activation& frame) {
  auto& named = arguments.named;
  const size_t count = macro.parameters.size();
  for (size_t i = 0; i < count; ++i) {
    Value value;
    const auto at = std::find_if(named.begin(), named.end(),
                                 [&](const auto& row) { return row.first.bytes == macro.parameters[i]->name; });
    if (i < arguments.positional.size()) {
      value = arguments.positional[i];
    } else if (at != named.end()) {
      value = std::move(at->second);
      named.erase(at);
    }
    frame.at(macro.parameters[i]->slot) = std::move(value);
  }
  if (!named.empty()) {
    return invalid_argument("macro '" + macro.name + "' takes no keyword argument '" + named[0].first.bytes + "'");
  }
  if (arguments.positional.size() > count) {
    return invalid_argument("macro '" + macro.name + "' takes at most " + std::to_string(count) + " arguments");
  }
  enter(macro.scope, frame);
  const size_t required = count - macro.defaults.size();
  for (size_t i = 0; i < count; ++i) {
    const Expr& parameter = *macro.parameters[i];
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

Result<Value> Interpreter::call_macro(const Macro& macro, const Ref<Activation>& enclosing, Arguments arguments) {
  const DepthGuard guard(runtime_);
  QUIRE_RETURN_IF_ERROR(guard.status());
  const auto frame = runtime_.heap().make<Activation>(macro.slots, enclosing);
  QUIRE_RETURN_IF_ERROR(bind_macro(macro, arguments, *frame));
  Capture capture(*this);
  QUIRE_RETURN_IF_ERROR(execute(macro.body, *frame).status());
  return capture.take();
}

// The value of a loop target after an item was assigned to it: what the condition of a loop lets through.
Result<Value> Interpreter::rebuild_target(const Expr& target, Activation& frame) {
  if (target.kind == ExprKind::kName) return frame.at(target.slot);
  std::vector<Value> items;
  for (const auto& item : target.children) {
    QUIRE_ASSIGN_OR_RETURN(items.emplace_back(), rebuild_target(*item, frame));
  }
  return make_tuple(runtime_.heap(), std::move(items));
}

// The items that pass the loop's condition, each asked for only when the loop gets to it.
Value Interpreter::filtered(const For& node, const Value& iterable, Activation& enclosing) {
  const auto frame = runtime_.heap().make<Activation>(node.condition_slots, Ref<Activation>(&enclosing));
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

Result<Interpreter::Flow> Interpreter::execute_for(const For& node, Activation& frame) {
  QUIRE_ASSIGN_OR_RETURN(Value iterable, evaluate(*node.iterable, frame));
  if (node.condition != nullptr) iterable = filtered(node, iterable, frame);
  QUIRE_ASSIGN_OR_RETURN(const auto items, iterate(runtime_, iterable));
  const auto loop = runtime_.heap().make<Loop>(iterable, items);
  bool nothing_done = true;  // as jinja2 has it: no body ran to its end
  while (true) {
    QUIRE_ASSIGN_OR_RETURN(auto item, loop->advance(runtime_));
    if (!item) break;
    QUIRE_RETURN_IF_ERROR(assign(*node.target, std::move(*item), frame));
    frame.slot(node.loop_slot) = Value(Kind::kNative, loop);
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

}  // namespace quire::jinja
