#include "jinja/value.h"

#include "jinja/dict.h"

namespace quire::jinja {

class StringObject : public Object {
 public:
  StringObject(Heap& heap, Text text) : Object(heap), text_(std::move(text)) {
    charge(text_.bytes.capacity() + text_.changes.capacity() * sizeof(Text::Change));
  }
  const Text& text() const { return text_; }

 private:
  Text text_;
};

namespace {

class UndefinedObject : public Object {
 public:
  UndefinedObject(Heap& heap, std::string message) : Object(heap), message_(std::move(message)) {}
  const std::string& message() const { return message_; }

 private:
  std::string message_;
};

}  // namespace

Value Value::boolean(bool value) {
  Value result(Kind::kBool);
  result.word_.integer = value ? 1 : 0;
  return result;
}

Value Value::integer(Int value) {
  Value result(Kind::kInt);
  result.word_.integer = value;
  return result;
}

Value Value::floating(double value) {
  Value result(Kind::kFloat);
  result.word_.floating = value;
  return result;
}

Value Value::undefined(Heap& heap, std::string message) {
  return Value(Kind::kUndefined, heap.make<UndefinedObject>(std::move(message)));
}

Value Value::string(Heap& heap, Text text) { return Value(Kind::kString, heap.make<StringObject>(std::move(text))); }

const Text& Value::text() const { return object_as<StringObject>()->text(); }

const std::string& Value::undefined_message() const { return object_as<UndefinedObject>()->message(); }

Sequence::Sequence(Heap& heap, std::vector<Value> items, Origin origin)
    : Object(heap), items_(std::move(items)), origin_(origin) {
  charge(items_.capacity() * sizeof(Value));
}

Value make_sequence(Heap& heap, Kind kind, std::vector<Value> items, Origin origin) {
  return Value(kind, heap.make<Sequence>(std::move(items), origin));
}

Value make_list(Heap& heap, std::vector<Value> items, Origin origin) {
  return make_sequence(heap, Kind::kList, std::move(items), origin);
}

Value make_tuple(Heap& heap, std::vector<Value> items, Origin origin) {
  return make_sequence(heap, Kind::kTuple, std::move(items), origin);
}

Value make_string(Heap& heap, std::string_view bytes, Origin origin) {
  return Value::string(heap, make_text(std::string(bytes), origin));
}

Range::Range(Heap& heap, Int start, Int stop, Int step) : Object(heap), start_(start), stop_(stop), step_(step) {}

Int Range::size() const {
  const Int span = step_ > 0 ? stop_ - start_ : start_ - stop_;
  const Int stride = step_ > 0 ? step_ : -step_;
  return span <= 0 ? 0 : (span - 1) / stride + 1;
}

const Value* Namespace::find(std::string_view name) const {
  for (const auto& [key, value] : attributes_) {
    if (key.is(Kind::kString) && key.text().bytes == name) return &value;
  }
  return nullptr;
}

void Namespace::set(const Value& name, Value value) {
  for (auto& [key, held] : attributes_) {
    if (compare_keys(key, name) == 0) {
      held = std::move(value);
      return;
    }
  }
  charge(2 * sizeof(Value));
  attributes_.emplace_back(name, std::move(value));
}

std::string Native::repr() const {
  std::string text = "<";
  text += type_name();
  return text + ">";
}

Result<Value> Native::call(Runtime&, Arguments) {
  return invalid_argument("a value of type " + quoted(type_name()) + " is not callable");
}

std::string quoted(std::string_view text) {
  std::string result(1, '\'');
  result += text;
  result += '\'';
  return result;
}

std::string_view type_name(const Value& value) {
  switch (value.kind()) {
    case Kind::kMissing:
    case Kind::kUndefined:
      return "Undefined";
    case Kind::kNone:
      return "NoneType";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kString:
      return "str";
    case Kind::kList:
      return "list";
    case Kind::kTuple:
      return "tuple";
    case Kind::kDict:
      return "dict";
    case Kind::kDictView:
      return value.dict_view().part() == DictView::Part::kKeys     ? "dict_keys"
             : value.dict_view().part() == DictView::Part::kValues ? "dict_values"
                                                                   : "dict_items";
    case Kind::kRange:
      return "range";
    case Kind::kNamespace:
      return "Namespace";
    case Kind::kIterator:
      return "generator";
    case Kind::kNative:
      return value.native().type_name();
  }
  return "object";
}

}  // namespace quire::jinja
