// The variable `loop` of a for statement.
#pragma once

#include "jinja/runtime.h"

namespace quire::jinja {

class Loop : public Native {
 public:
  // `items` walks over `iterable`.
  Loop(Heap& heap, Value iterable, Ref<Iterator> items);

  // The next item of the loop, which becomes the current one.
  Result<std::optional<Value>> advance(Runtime& runtime);

  std::string_view type_name() const override { return "LoopContext"; }
  std::string repr() const override { return "<LoopContext " + std::to_string(index0_ + 1) + ">"; }
  Result<std::optional<Value>> attribute(Runtime& runtime, std::string_view name) override;
  Result<std::optional<int64_t>> length(Runtime& runtime) override;
  void drop_references() override;

 private:
  Result<int64_t> count(Runtime& runtime);
  // Looks one item ahead; missing at the end.
  Result<Value> peek(Runtime& runtime);

  Value iterable_;
  Ref<Iterator> items_;
  int64_t index0_ = -1;
  std::optional<int64_t> count_;
  Value before_, current_, after_;
};

}  // namespace quire::jinja
