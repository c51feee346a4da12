#include "jinja/iteration.h"

#include <algorithm>

namespace quire::jinja {
namespace {

using Next = Result<std::optional<Value>>;

Next end_of_items() { return std::optional<Value>(); }

class ItemIterator : public Iterator {
 public:
  ItemIterator(Heap& heap, std::vector<Value> items) : Iterator(heap), items_(std::move(items)) {
    charge(items_.capacity() * sizeof(Value));
  }
  Next next(Runtime& runtime) override {
    QUIRE_RETURN_IF_ERROR(runtime.charge(1));
    if (at_ == items_.size()) return end_of_items();
    return std::optional<Value>(items_[at_++]);
  }

 private:
  std::vector<Value> items_;
  size_t at_ = 0;
};

// Over anything with a fixed number of items that are cheap to reach by index.
class IndexIterator : public Iterator {
 public:
  IndexIterator(Heap& heap, Value value, size_t size) : Iterator(heap), value_(std::move(value)), size_(size) {}
  Next next(Runtime& runtime) override {
    QUIRE_RETURN_IF_ERROR(runtime.charge(1));
    if (at_ == size_) return end_of_items();
    return std::optional<Value>(item(at_++));
  }

 private:
  Value item(size_t index) const {
    if (value_.is_sequence()) return value_.sequence().items()[index];
    if (value_.is(Kind::kDict)) return value_.dict().entries()[index].first;
    if (value_.is(Kind::kDictView)) return value_.dict_view().at(index);
    return Value::integer(value_.range().at(static_cast<Int>(index)));
  }

  Value value_;
  size_t size_;
  size_t at_ = 0;
};

class CharacterIterator : public Iterator {
 public:
  CharacterIterator(Heap& heap, Value string) : Iterator(heap), string_(std::move(string)) {}
  Next next(Runtime& runtime) override {
    QUIRE_RETURN_IF_ERROR(runtime.charge(1));
    const Text& text = string_.text();
    if (at_ == text.bytes.size()) return end_of_items();
    const size_t begin = at_;
    at_ += utf8_length(text.bytes[begin]);
    Text character = sub_text(text, begin, at_);
    character.safe = false;
    return std::optional<Value>(Value::string(heap(), std::move(character)));
  }

 private:
  Value string_;
  size_t at_ = 0;
};

class Generator : public Iterator {
 public:
  Generator(Heap& heap, GeneratorStep step) : Iterator(heap), step_(std::move(step)) {}
  Next next(Runtime& runtime) override {
    const DepthGuard guard(runtime);
    QUIRE_RETURN_IF_ERROR(guard.status());
    QUIRE_RETURN_IF_ERROR(runtime.charge(1));
    if (!step_) return end_of_items();
    auto item = step_(runtime);
    if (!item.ok() || !*item) step_ = nullptr;
    return item;
  }

 private:
  GeneratorStep step_;
};

Result<size_t> fixed_size(const Value& value) {
  if (value.is_sequence()) return value.sequence().items().size();
  if (value.is(Kind::kDict)) return value.dict().entries().size();
  if (value.is(Kind::kDictView)) return value.dict_view().dict().entries().size();
  if (value.is(Kind::kRange)) return static_cast<size_t>(value.range().size());
  return invalid_argument("a value of type " + quoted(type_name(value)) + " is not iterable");
}

}  // namespace

Result<Ref<Iterator>> iterate(Runtime& runtime, const Value& value) {
  Heap& heap = runtime.heap();
  if (value.is(Kind::kIterator)) return Ref<Iterator>(&value.iterator());
  if (value.is(Kind::kUndefined)) return Ref<Iterator>(heap.make<ItemIterator>(std::vector<Value>()).get());
  if (value.is(Kind::kString)) return Ref<Iterator>(heap.make<CharacterIterator>(value).get());
  QUIRE_ASSIGN_OR_RETURN(const size_t size, fixed_size(value));
  return Ref<Iterator>(heap.make<IndexIterator>(value, size).get());
}

bool iterable(const Value& value) {
  return value.is(Kind::kIterator) || value.is(Kind::kUndefined) || value.is(Kind::kString) || fixed_size(value).ok();
}

Result<std::vector<Value>> collect(Runtime& runtime, const Value& value) {
  if (value.is_sequence()) {
    QUIRE_RETURN_IF_ERROR(runtime.charge(1 + value.sequence().items().size()));
    return value.sequence().items();
  }
  QUIRE_ASSIGN_OR_RETURN(const auto source, iterate(runtime, value));
  std::vector<Value> items;
  while (true) {
    QUIRE_ASSIGN_OR_RETURN(auto item, source->next(runtime));
    if (!item) return items;
    if (items.size() >= kMaxListItems) return out_of_range("a list of the template is too long");
    items.push_back(std::move(*item));
  }
}

Result<int64_t> length(Runtime& runtime, const Value& value) {
  if (value.is(Kind::kUndefined)) return int64_t{0};
  if (value.is(Kind::kString)) {
    QUIRE_RETURN_IF_ERROR(runtime.charge_bytes(value.text().ascii ? 0 : value.text().bytes.size()));
    return static_cast<int64_t>(value.text().size_code_points());
  }
  if (value.is(Kind::kNative)) {
    QUIRE_ASSIGN_OR_RETURN(const auto known, value.native().length(runtime));
    if (known) return *known;
  } else if (const auto size = fixed_size(value); size.ok()) {
    return static_cast<int64_t>(*size);
  }
  return invalid_argument("a value of type " + quoted(type_name(value)) + " has no length");
}

Result<Value> reversed(Runtime& runtime, const Value& value) {
  if (!value.is(Kind::kString) && !value.is(Kind::kUndefined) && !fixed_size(value).ok()) {
    return invalid_argument("a value of type " + quoted(type_name(value)) + " is not reversible");
  }
  QUIRE_ASSIGN_OR_RETURN(auto items, collect(runtime, value));
  std::reverse(items.begin(), items.end());
  return make_iterator(runtime.heap(), std::move(items));
}

Value make_iterator(Heap& heap, std::vector<Value> items) {
  return Value(Kind::kIterator, heap.make<ItemIterator>(std::move(items)));
}

Value make_generator(Heap& heap, GeneratorStep step) {
  return Value(Kind::kIterator, heap.make<Generator>(std::move(step)));
}

Value make_deferred(Heap& heap, std::function<Result<std::vector<Value>>(Runtime&)> compute) {
  Ref<Iterator> items;
  return make_generator(heap, [compute = std::move(compute), items](Runtime& runtime) mutable -> Next {
    if (!items) {
      QUIRE_ASSIGN_OR_RETURN(auto computed, compute(runtime));
      items = Ref<Iterator>(runtime.heap().make<ItemIterator>(std::move(computed)).get());
    }
    return items->next(runtime);
  });
}

}  // namespace quire::jinja
