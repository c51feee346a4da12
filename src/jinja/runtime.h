// What functions, filters and methods need from the rendering they run in: memory, the step budget, calls back.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/work_budget.h"
#include "jinja/dict.h"
#include "jinja/value.h"

namespace quire::jinja {

struct Builtin;

class Runtime {
 public:
  // A rendering ends early when `budget` is spent; null: it has no such end.
  explicit Runtime(std::optional<int64_t> now, const WorkBudget* budget = nullptr)
      : heap_(kMaxLiveBytes), now_(now), meter_(budget) {}

  Heap& heap() { return heap_; }
  // Seconds since the epoch to be read as UTC; absent: the clock of the machine, in local time.
  std::optional<int64_t> now() const { return now_; }

  // Counts work; fails when the rendering has done too much, holds too much memory or is called off.
  Status charge(size_t steps);
  Status charge_bytes(size_t bytes) { return charge(1 + bytes / kBytesPerStep); }

  // For loops over one long string, which ask it and leave what they build half done: the next charge() fails.
  WorkMeter& meter() { return meter_; }

  Result<Value> string(TextBuilder builder);
  Value string(std::string_view bytes, Origin origin = Origin::kTemplate) { return make_string(heap_, bytes, origin); }
  Value undefined(std::string message) { return Value::undefined(heap_, std::move(message)); }

  Result<Value> call(const Value& callee, Arguments arguments);

  // Recursion of evaluations; see DepthGuard.
  Status enter();
  void leave() { --depth_; }

 private:
  Heap heap_;
  std::optional<int64_t> now_;
  WorkMeter meter_;
  int64_t steps_left_ = kMaxSteps;
  int depth_ = 0;
};

// Counts one level of recursion as long as it lives.
class DepthGuard {
 public:
  explicit DepthGuard(Runtime& runtime) : runtime_(runtime), status_(runtime.enter()) {}
  ~DepthGuard() { runtime_.leave(); }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;
  const Status& status() const { return status_; }

 private:
  Runtime& runtime_;
  Status status_;
};

// One call of a builtin. `args` has one entry per declared parameter, kMissing where an optional one was not given;
// a builtin that takes what it gets ("*") finds it in `rest` instead.
struct Call {
  Runtime& runtime;
  Value subject;  // the filtered or tested value, or the object of a method
  std::vector<Value> args;
  Arguments rest;

  Heap& heap() const { return runtime.heap(); }
  bool given(size_t index) const { return !args[index].is(Kind::kMissing); }
  bool given_not_none(size_t index) const { return given(index) && !args[index].is(Kind::kNone); }
};

// A filter, test, method or function. `parameters` names them in order, "?" marks an optional one, a final "/" that
// none may be passed by name, "*" alone that any arguments are taken.
struct Builtin {
  std::string_view name;
  std::string_view parameters;
  Result<Value> (*function)(Call& call);
};

const Builtin* find_builtin(std::span<const Builtin> table, std::string_view name);

Result<Value> invoke(Runtime& runtime, const Builtin& builtin, Value subject, Arguments arguments);

// A builtin as a value: a global function, or a method bound to its object.
Value make_function(Heap& heap, const Builtin& builtin, Value subject = Value::none());

}  // namespace quire::jinja
