#include "jinja/loop.h"

#include "jinja/iteration.h"
#include "jinja/known.h"

namespace quire::jinja {
Loop::Loop(Heap& heap, Value iterable, Ref<Iterator> items)
    : Native(heap), iterable_(std::move(iterable)), items_(std::move(items)) {}

void Loop::drop_references() {
  iterable_ = before_ = current_ = after_ = Value();
  items_ = Ref<Iterator>();
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

Result<std::optional<Value>> Loop::attribute(Runtime& runtime, std::string_view name) {
  const auto integer = [](int64_t value) { return std::optional<Value>(Value::integer(value)); };
  if (name == "index0") return integer(index0_);
  if (name == "index") return integer(index0_ + 1);
  if (name == "first") return std::optional<Value>(Value::boolean(index0_ == 0));
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
  if (is_refused_loop_attribute(name)) return not_known("attribute", "loop." + std::string(name));
  return std::optional<Value>();
}

}  // namespace quire::jinja
