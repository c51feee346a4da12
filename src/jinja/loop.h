// The variable `loop` of a for statement.
#pragma once

#include "jinja/interpreter.h"

namespace quire::jinja {

// How `loop(items)` runs a recursive loop again; without an interpreter the loop is not recursive.
struct LoopRecursion {
  Interpreter* interpreter = nullptr;
  const For* node = nullptr;
  Ref<Activation> enclosing;
  int depth = 0;  // 0 for the outermost loop
};

class Loop : public Native {
 public:
  // `items` walks over `iterable`.
  Loop(Heap& heap, Value iterable, Ref<Iterator> items, LoopRecursion recursion);

  // The next item of the loop, which becomes the current one.
  Result<std::optional<Value>> advance(Runtime& runtime);

  std::string_view type_name() const override { return "LoopContext"; }
  std::string repr() const override { return "<LoopContext " + std::to_string(index0_ + 1) + ">"; }
  bool callable() const override { return true; }
  Result<Value> call(Runtime& runtime, Arguments arguments) override;
  Result<std::optional<Value>> attribute(Runtime& runtime, std::string_view name) override;
  Result<std::optional<int64_t>> length(Runtime& runtime) override;
  void drop_references() override;

  // Methods.
  Result<Value> cycle(const std::vector<Value>& choices) const;
  Result<Value> changed(Runtime& runtime, std::vector<Value> values);

 private:
  Result<int64_t> count(Runtime& runtime);
  // Looks one item ahead; missing at the end.
  Result<Value> peek(Runtime& runtime);

  Value iterable_;
  Ref<Iterator> items_;
  LoopRecursion recursion_;
  int64_t index0_ = -1;
  std::optional<int64_t> count_;
  Value before_, current_, after_, last_changed_;
};

}  // namespace quire::jinja
