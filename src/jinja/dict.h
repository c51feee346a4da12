// Dicts with Python's key semantics: insertion order, 1 == 1.0 == true as one key, only immutable kinds as keys.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "jinja/value.h"

namespace quire::jinja {

class Dict : public Object {
 public:
  using Entries = std::vector<std::pair<Value, Value>>;

  // Keys must be hashable (see hashable()). Of equal keys the first gives position and key, the last the value.
  Dict(Heap& heap, Entries entries, Origin origin);

  const Entries& entries() const { return entries_; }
  Origin origin() const { return origin_; }
  // `key` must be hashable.
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;

 private:
  template <typename Probe>
  const Value* find_by(Probe compare_with) const;

  Entries entries_;
  std::vector<uint32_t> by_key_;  // positions in the order of compare_keys
  Origin origin_;
};

class DictView : public Object {
 public:
  enum class Part : uint8_t { kKeys, kValues, kItems };
  DictView(Heap& heap, Value dict, Part part) : Object(heap), dict_(std::move(dict)), part_(part) {}
  const Dict& dict() const { return dict_.dict(); }
  Part part() const { return part_; }
  Value at(size_t index) const;

 private:
  Value dict_;
  Part part_;
};

inline const Dict& Value::dict() const { return *object_as<Dict>(); }
inline const DictView& Value::dict_view() const { return *object_as<DictView>(); }

Value make_dict(Heap& heap, Dict::Entries entries, Origin origin = Origin::kTemplate);

bool hashable(const Value& value);
// What is said of a key that is not.
Status unhashable(const Value& value);
// A total order of hashable values in which exactly those are equal that are one key to Python.
int compare_keys(const Value& left, const Value& right);

}  // namespace quire::jinja
