// Values of a template: what Python objects are to jinja2.
//
// A Value is a tagged word or a reference to an object of the rendering's heap; copying is cheap. All kinds but
// namespace, loop and iterator are immutable. Integers have 64 bits; arithmetic that leaves them is an error, not a wrap.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/status.h"
#include "jinja/heap.h"
#include "jinja/text.h"

namespace quire::jinja {

using Int = int64_t;

enum class Kind : uint8_t {
  kMissing,  // no value at all: an unset variable or an argument not given; never visible to a template
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kString,
  kList,
  kTuple,
  kDict,
  kDictView,  // keys(), values(), items()
  kRange,
  kNamespace,
  kIterator,  // consumed by use, like Python's generators
  kNative,    // functions, methods, macros, loop
};

class Value;
class Runtime;
class StringObject;
class Sequence;
class Dict;
class DictView;
class Range;
class Namespace;
class Iterator;
class Native;

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<Text, Value>> named;
};

class Value {
 public:
  Value() = default;
  static Value none() { return Value(Kind::kNone); }
  static Value boolean(bool value);
  static Value integer(Int value);
  static Value floating(double value);
  // `message` says why, once something is done with the value that undefined values do not allow.
  static Value undefined(Heap& heap, std::string message);
  static Value string(Heap& heap, Text text);
  template <typename T>
  Value(Kind kind, Ref<T> object) : kind_(kind) {
    word_.object = object.get();
    word_.object->retain();
  }

  Value(const Value& other) : kind_(other.kind_), origin_(other.origin_), word_(other.word_) {
    if (holds_object()) word_.object->retain();
  }
  Value(Value&& other) noexcept
      : kind_(std::exchange(other.kind_, Kind::kMissing)), origin_(other.origin_), word_(other.word_) {}
  Value& operator=(Value other) noexcept {
    std::swap(kind_, other.kind_);
    std::swap(origin_, other.origin_);
    std::swap(word_, other.word_);
    return *this;
  }
  ~Value() {
    if (holds_object()) word_.object->release();
  }

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  // In Python a bool is an int.
  bool is_integral() const { return kind_ == Kind::kInt || kind_ == Kind::kBool; }
  bool is_number() const { return is_integral() || kind_ == Kind::kFloat; }
  bool is_sequence() const { return kind_ == Kind::kList || kind_ == Kind::kTuple; }

  // Who wrote a number, boolean or none down; what a template computes is its own. Objects know more of themselves.
  Origin origin() const { return origin_; }
  Value written_by(Origin origin) && {
    origin_ = origin;
    return std::move(*this);
  }

  bool as_bool() const { return word_.integer != 0; }
  Int as_int() const { return word_.integer; }
  double as_float() const { return word_.floating; }
  const Text& text() const;
  const std::string& undefined_message() const;
  const Sequence& sequence() const { return *object_as<Sequence>(); }
  const Dict& dict() const;  // defined in dict.h
  const DictView& dict_view() const;
  const Range& range() const { return *object_as<Range>(); }
  Namespace& name_space() const { return *object_as<Namespace>(); }
  Iterator& iterator() const { return *object_as<Iterator>(); }
  Native& native() const { return *object_as<Native>(); }
  // Identity, for `is sameas`; null for kinds that live in the word.
  const Object* object() const { return holds_object() ? word_.object : nullptr; }

 private:
  explicit Value(Kind kind) : kind_(kind) {}
  bool holds_object() const { return kind_ == Kind::kUndefined || kind_ >= Kind::kString; }
  template <typename T>
  T* object_as() const {
    return static_cast<T*>(word_.object);
  }

  Kind kind_ = Kind::kMissing;
  Origin origin_ = Origin::kTemplate;
  union {
    Int integer = 0;
    double floating;
    Object* object;
  } word_;
};

// List or tuple. `origin` says who wrote the brackets and commas when the value is printed.
class Sequence : public Object {
 public:
  Sequence(Heap& heap, std::vector<Value> items, Origin origin);
  const std::vector<Value>& items() const { return items_; }
  Origin origin() const { return origin_; }

 private:
  std::vector<Value> items_;
  Origin origin_;
};

Value make_list(Heap& heap, std::vector<Value> items, Origin origin = Origin::kTemplate);
Value make_tuple(Heap& heap, std::vector<Value> items, Origin origin = Origin::kTemplate);
// `kind` is list or tuple.
Value make_sequence(Heap& heap, Kind kind, std::vector<Value> items, Origin origin);
Value make_string(Heap& heap, std::string_view bytes, Origin origin = Origin::kTemplate);

// Bounds are at most kMaxRangeBound from 0.
class Range : public Object {
 public:
  Range(Heap& heap, Int start, Int stop, Int step);
  Int start() const { return start_; }
  Int stop() const { return stop_; }
  Int step() const { return step_; }
  Int size() const;
  Int at(Int index) const { return start_ + index * step_; }

 private:
  Int start_, stop_, step_;
};

// Mutable attributes, created by namespace() and written by {% set name.attribute = ... %}.
class Namespace : public CyclicObject {
 public:
  explicit Namespace(Heap& heap) : CyclicObject(heap) {}
  const Value* find(std::string_view name) const;
  // Names are strings, save for what namespace({1: 2}) may bring in, which can be printed but not reached.
  void set(const Value& name, Value value);
  const std::vector<std::pair<Value, Value>>& attributes() const { return attributes_; }
  void drop_references() override { attributes_.clear(); }

 private:
  std::vector<std::pair<Value, Value>> attributes_;
};

class Iterator : public Object {
 public:
  // The next item, or nothing at the end. A call after the end finds the end again.
  virtual Result<std::optional<Value>> next(Runtime& runtime) = 0;

 protected:
  using Object::Object;
};

// What the interpreter itself provides: functions, methods, macros, loop.
class Native : public CyclicObject {
 public:
  virtual std::string_view type_name() const = 0;
  // As Python prints it.
  virtual std::string repr() const;
  virtual Result<Value> call(Runtime& runtime, Arguments arguments);
  virtual Result<std::optional<Value>> attribute(Runtime&, std::string_view) { return std::optional<Value>(); }
  virtual Result<std::optional<int64_t>> length(Runtime&) { return std::optional<int64_t>(); }
  void drop_references() override {}

 protected:
  using CyclicObject::CyclicObject;
};

// As Python names the type, for messages.
std::string_view type_name(const Value& value);
std::string quoted(std::string_view text);  // 'text'

}  // namespace quire::jinja
