#include "jinja/loop.h"

#include "jinja/attributes.h"
#include "jinja/compare.h"

namespace quire::jinja {
namespace {

Loop& subject_loop(const Call& call) { return static_cast<Loop&>(call.subject.native()); }

Result<Value> cycle_method(Call& call) {
  if (!call.rest.named.empty()) return invalid_argument("loop.cycle takes no named arguments");
  return subject_loop(call).cycle(call.rest.positional);
}

Result<Value> changed_method(Call& call) {
  if (!call.rest.named.empty()) return invalid_argument("loop.changed takes no named arguments");
  return subject_loop(call).changed(call.runtime, std::move(call.rest.positional));
}

constexpr Builtin kMethods[] = {{"cycle", "*", cycle_method}, {"changed", "*", changed_method}};

}  // namespace

Loop::Loop(Heap& heap, Value iterable, Ref<Iterator> items, LoopRecursion recursion)
    : Native(heap), iterable_(std::move(iterable)), items_(std::move(items)), recursion_(std::move(recursion)) {}

void Loop::drop_references() {
  iterable_ = before_ = current_ = after_ = last_changed_ = Value();
  items_ = Ref<Iterator>();
  recursion_ = LoopRecursion();
}

Result<std::optional<Value>> Loop::advance(Runtime& runtime) {
  std::optional<Value> item;
  if (!after_.is(Kind::kMissing)) {
    item = std::exchange(after_, Value());
  } else {
    QUIRE_ASSIGN_OR_RETURN(item, items_->next(runtime));
  }
  if (!item) return item;
  ++index0_;
  before_ = std::exchange(current_, *item);
  return item;
}

Result<Value> Loop::peek(Runtime& runtime) {
  if (after_.is(Kind::kMissing)) {
    QUIRE_ASSIGN_OR_RETURN(auto item, items_->next(runtime));
    if (item) after_ = std::move(*item);
  }
  return after_;
}

Result<int64_t> Loop::count(Runtime& runtime) {
  if (count_) return *count_;
  if (!iterable_.is(Kind::kIterator)) {
    QUIRE_ASSIGN_OR_RETURN(count_, quire::jinja::length(runtime, iterable_));
    return *count_;
  }
  // A generator is run to its end, and the loop goes on with what it gave.
  QUIRE_ASSIGN_OR_RETURN(auto rest, collect(runtime, iterable_));
  count_ = static_cast<int64_t>(rest.size()) + index0_ + 1 + (after_.is(Kind::kMissing) ? 0 : 1);
  const Value remaining = make_iterator(heap(), std::move(rest));
  items_ = Ref<Iterator>(&remaining.iterator());
  return *count_;
}

Result<std::optional<int64_t>> Loop::length(Runtime& runtime) {
  QUIRE_ASSIGN_OR_RETURN(const int64_t known, count(runtime));
  return std::optional<int64_t>(known);
}

Result<Value> Loop::cycle(const std::vector<Value>& choices) const {
  if (choices.empty()) return invalid_argument("loop.cycle wants at least one item");
  return choices[static_cast<size_t>(index0_) % choices.size()];
}

Result<Value> Loop::changed(Runtime& runtime, std::vector<Value> values) {
  Value now = make_tuple(heap(), std::move(values));
  if (!last_changed_.is(Kind::kMissing)) {
    QUIRE_ASSIGN_OR_RETURN(const bool same, equal(runtime, last_changed_, now));
    if (same) return Value::boolean(false);
  }
  last_changed_ = std::move(now);
  return Value::boolean(true);
}

Result<Value> Loop::call(Runtime&, Arguments arguments) {
  if (recursion_.interpreter == nullptr) {
    return invalid_argument("the loop must have the mark 'recursive' to be called");
  }
  if (arguments.positional.size() != 1 || !arguments.named.empty()) {
    return invalid_argument("a recursive loop is called with the items to loop over");
  }
  const LoopRecursion recursion = recursion_;
  return recursion.interpreter->run_recursive_loop(*recursion.node, recursion.enclosing, arguments.positional[0],
                                                   recursion.depth + 1);
}

Result<std::optional<Value>> Loop::attribute(Runtime& runtime, std::string_view name) {
  const auto integer = [](int64_t value) { return std::optional<Value>(Value::integer(value)); };
  if (name == "index0") return integer(index0_);
  if (name == "index") return integer(index0_ + 1);
  if (name == "first") return std::optional<Value>(Value::boolean(index0_ == 0));
  if (name == "depth0") return integer(recursion_.depth);
  if (name == "depth") return integer(recursion_.depth + 1);
  if (name == "length" || name == "revindex" || name == "revindex0") {
    QUIRE_ASSIGN_OR_RETURN(const int64_t known, count(runtime));
    return integer(name == "length" ? known : name == "revindex" ? known - index0_ : known - index0_ - 1);
  }
  if (name == "last" || name == "nextitem") {
    QUIRE_ASSIGN_OR_RETURN(const Value next, peek(runtime));
    const bool at_end = next.is(Kind::kMissing);
    if (name == "last") return std::optional<Value>(Value::boolean(at_end));
    return std::optional<Value>(at_end ? runtime.undefined("there is no next item") : next);
  }
  if (name == "previtem") {
    return std::optional<Value>(index0_ == 0 ? runtime.undefined("there is no previous item") : before_);
  }
  const Builtin* method = find_builtin(kMethods, name);
  if (method == nullptr) return std::optional<Value>();
  return std::optional<Value>(make_function(heap(), *method, Value(Kind::kNative, Ref<Loop>(this))));
}

}  // namespace quire::jinja
