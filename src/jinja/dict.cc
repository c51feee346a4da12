#include "jinja/dict.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "jinja/number.h"

namespace quire::jinja {
namespace {

// Below this many entries a scan beats a search.
constexpr size_t kScanEntries = 8;
constexpr int kMaxKeyDepth = 64;

bool hashable_to_depth(const Value& value, int depth) {
  switch (value.kind()) {
    case Kind::kList:
    case Kind::kDict:
    case Kind::kDictView:
      return false;
    case Kind::kTuple: {
      if (depth == 0) return false;
      const auto& items = value.sequence().items();
      return std::all_of(items.begin(), items.end(),
                         [depth](const Value& item) { return hashable_to_depth(item, depth - 1); });
    }
    default:
      return true;
  }
}

int key_class(const Value& value) {
  if (value.is_number()) return static_cast<int>(Kind::kInt);
  return static_cast<int>(value.kind());
}

int compare_number_keys(const Value& left, const Value& right) {
  const bool left_nan = left.is(Kind::kFloat) && std::isnan(left.as_float());
  const bool right_nan = right.is(Kind::kFloat) && std::isnan(right.as_float());
  if (left_nan || right_nan) return static_cast<int>(right_nan) - static_cast<int>(left_nan);
  return *compare_numbers(left, right);
}

int compare_tuples(const std::vector<Value>& left, const std::vector<Value>& right) {
  for (size_t i = 0; i < left.size() && i < right.size(); ++i) {
    const int order = compare_keys(left[i], right[i]);
    if (order != 0) return order;
  }
  return left.size() < right.size() ? -1 : left.size() > right.size() ? 1 : 0;
}

}  // namespace

bool hashable(const Value& value) { return hashable_to_depth(value, kMaxKeyDepth); }

Status unhashable(const Value& value) { return invalid_argument("unhashable type: " + quoted(type_name(value))); }

int compare_keys(const Value& left, const Value& right) {
  const int left_class = key_class(left), right_class = key_class(right);
  if (left_class != right_class) return left_class < right_class ? -1 : 1;
  if (left.is_number()) return compare_number_keys(left, right);
  switch (left.kind()) {
    case Kind::kMissing:
    case Kind::kUndefined:
    case Kind::kNone:
      return 0;
    case Kind::kString:
      return left.text().bytes.compare(right.text().bytes);
    case Kind::kTuple:
      return compare_tuples(left.sequence().items(), right.sequence().items());
    default:
      return std::less<>()(left.object(), right.object()) ? -1 : left.object() == right.object() ? 0 : 1;
  }
}

Dict::Dict(Heap& heap, Entries entries, Origin origin) : Object(heap), origin_(origin) {
  std::vector<uint32_t> order(entries.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&entries](uint32_t left, uint32_t right) {
    return compare_keys(entries[left].first, entries[right].first) < 0;
  });
  // Of a run of equal keys the first stays, with the value of the last.
  std::vector<bool> repeated(entries.size());
  for (size_t i = 0, first = 0; i < order.size(); ++i) {
    if (i > first && compare_keys(entries[order[first]].first, entries[order[i]].first) == 0) {
      entries[order[first]].second = entries[order[i]].second;
      repeated[order[i]] = true;
    } else {
      first = i;
    }
  }
  std::vector<uint32_t> position(entries.size());
  entries_.reserve(entries.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    position[i] = static_cast<uint32_t>(entries_.size());
    if (!repeated[i]) entries_.push_back(std::move(entries[i]));
  }
  for (const uint32_t at : order) {
    if (!repeated[at]) by_key_.push_back(position[at]);
  }
  charge(entries_.capacity() * sizeof(Entries::value_type) + by_key_.capacity() * sizeof(uint32_t));
}

template <typename Probe>
const Value* Dict::find_by(Probe compare_with) const {
  if (entries_.size() <= kScanEntries) {
    for (const auto& [key, value] : entries_) {
      if (compare_with(key) == 0) return &value;
    }
    return nullptr;
  }
  const auto at = std::partition_point(by_key_.begin(), by_key_.end(),
                                       [&](uint32_t position) { return compare_with(entries_[position].first) < 0; });
  if (at == by_key_.end() || compare_with(entries_[*at].first) != 0) return nullptr;
  return &entries_[*at].second;
}

const Value* Dict::find(const Value& key) const {
  return find_by([&key](const Value& held) { return compare_keys(held, key); });
}

const Value* Dict::find(std::string_view key) const {
  return find_by([key](const Value& held) {
    if (held.is(Kind::kString)) return std::string_view(held.text().bytes).compare(key);
    return key_class(held) < static_cast<int>(Kind::kString) ? -1 : 1;
  });
}

Value DictView::at(size_t index) const {
  const auto& [key, value] = dict().entries()[index];
  if (part_ == Part::kKeys) return key;
  if (part_ == Part::kValues) return value;
  return make_tuple(heap(), {key, value}, dict().origin());
}

Value make_dict(Heap& heap, Dict::Entries entries, Origin origin) {
  return Value(Kind::kDict, heap.make<Dict>(std::move(entries), origin));
}

}  // namespace quire::jinja
