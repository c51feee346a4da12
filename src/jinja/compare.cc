#include "jinja/compare.h"

#include <numeric>

#include "jinja/iteration.h"
#include "jinja/number.h"

namespace quire::jinja {
namespace {

Result<bool> equal_items(Runtime& runtime, const std::vector<Value>& left, const std::vector<Value>& right) {
  if (left.size() != right.size()) return false;
  for (size_t i = 0; i < left.size(); ++i) {
    QUIRE_ASSIGN_OR_RETURN(const bool same, equal(runtime, left[i], right[i]));
    if (!same) return false;
  }
  return true;
}

Result<bool> equal_dicts(Runtime& runtime, const Dict& left, const Dict& right) {
  if (left.entries().size() != right.entries().size()) return false;
  for (const auto& [key, value] : left.entries()) {
    const Value* other = right.find(key);
    if (other == nullptr) return false;
    QUIRE_ASSIGN_OR_RETURN(const bool same, equal(runtime, value, *other));
    if (!same) return false;
  }
  return true;
}

bool equal_ranges(const Range& left, const Range& right) {
  if (left.size() != right.size()) return false;
  return left.size() == 0 || (left.start() == right.start() && (left.size() == 1 || left.step() == right.step()));
}

Status not_ordered(const Value& left, const Value& right) {
  if (left.is(Kind::kUndefined)) return invalid_argument(left.undefined_message());
  if (right.is(Kind::kUndefined)) return invalid_argument(right.undefined_message());
  return invalid_argument("values of types " + quoted(type_name(left)) + " and " + quoted(type_name(right)) +
                          " have no order");
}

Result<std::optional<int>> compare_items(Runtime& runtime, const std::vector<Value>& left,
                                         const std::vector<Value>& right) {
  for (size_t i = 0; i < left.size() && i < right.size(); ++i) {
    QUIRE_ASSIGN_OR_RETURN(const bool same, equal(runtime, left[i], right[i]));
    if (!same) return compare(runtime, left[i], right[i]);
  }
  return std::optional<int>(left.size() < right.size() ? -1 : left.size() > right.size() ? 1 : 0);
}

// Merge sort of its own, because the order may be inconsistent (NaN) or fail half-way.
Status merge_sort(Runtime& runtime, const std::vector<Value>& keys, bool reverse, std::vector<size_t>& order,
                  size_t begin, size_t end) {
  if (end - begin < 2) return Status();
  const size_t middle = begin + (end - begin) / 2;
  QUIRE_RETURN_IF_ERROR(merge_sort(runtime, keys, reverse, order, begin, middle));
  QUIRE_RETURN_IF_ERROR(merge_sort(runtime, keys, reverse, order, middle, end));
  std::vector<size_t> merged;
  size_t left = begin, right = middle;
  while (left < middle && right < end) {
    const Value& a = keys[order[left]];
    const Value& b = keys[order[right]];
    QUIRE_ASSIGN_OR_RETURN(const auto by_key, compare(runtime, reverse ? a : b, reverse ? b : a));
    merged.push_back(by_key && *by_key < 0 ? order[right++] : order[left++]);
  }
  merged.insert(merged.end(), order.begin() + static_cast<ptrdiff_t>(left),
                order.begin() + static_cast<ptrdiff_t>(middle));
  merged.insert(merged.end(), order.begin() + static_cast<ptrdiff_t>(right),
                order.begin() + static_cast<ptrdiff_t>(end));
  std::copy(merged.begin(), merged.end(), order.begin() + static_cast<ptrdiff_t>(begin));
  return Status();
}

}  // namespace

bool truthy(const Value& value) {
  switch (value.kind()) {
    case Kind::kMissing:
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
    case Kind::kInt:
      return value.as_int() != 0;
    case Kind::kFloat:
      return value.as_float() != 0;
    case Kind::kString:
      return !value.text().bytes.empty();
    case Kind::kList:
    case Kind::kTuple:
      return !value.sequence().items().empty();
    case Kind::kDict:
      return !value.dict().entries().empty();
    case Kind::kDictView:
      return !value.dict_view().dict().entries().empty();
    case Kind::kRange:
      return value.range().size() > 0;
    case Kind::kNamespace:
    case Kind::kIterator:
    case Kind::kNative:
      return true;
  }
  return false;
}

Result<bool> equal(Runtime& runtime, const Value& left, const Value& right) {
  const DepthGuard guard(runtime);
  QUIRE_RETURN_IF_ERROR(guard.status());
  QUIRE_RETURN_IF_ERROR(runtime.charge(1));
  if (left.is_number() && right.is_number()) {
    const auto order = compare_numbers(left, right);
    return order && *order == 0;
  }
  if (left.kind() != right.kind()) return false;
  switch (left.kind()) {
    case Kind::kMissing:
    case Kind::kUndefined:
    case Kind::kNone:
      return true;
    case Kind::kString:
      return left.text().bytes == right.text().bytes;
    case Kind::kList:
    case Kind::kTuple:
      return equal_items(runtime, left.sequence().items(), right.sequence().items());
    case Kind::kDict:
      return equal_dicts(runtime, left.dict(), right.dict());
    case Kind::kRange:
      return equal_ranges(left.range(), right.range());
    default:
      return left.object() == right.object();
  }
}

Result<std::optional<int>> compare(Runtime& runtime, const Value& left, const Value& right) {
  const DepthGuard guard(runtime);
  QUIRE_RETURN_IF_ERROR(guard.status());
  QUIRE_RETURN_IF_ERROR(runtime.charge(1));
  if (left.is_number() && right.is_number()) return compare_numbers(left, right);
  if (left.kind() != right.kind()) return not_ordered(left, right);
  if (left.is(Kind::kString)) return std::optional<int>(left.text().bytes.compare(right.text().bytes));
  if (left.is_sequence()) return compare_items(runtime, left.sequence().items(), right.sequence().items());
  return not_ordered(left, right);
}

Result<bool> contains(Runtime& runtime, const Value& container, const Value& item) {
  if (container.is(Kind::kString)) {
    if (!item.is(Kind::kString)) {
      return invalid_argument("'in <string>' requires a string on the left, not " + quoted(type_name(item)));
    }
    QUIRE_RETURN_IF_ERROR(runtime.charge_bytes(container.text().bytes.size()));
    return container.text().bytes.find(item.text().bytes) != std::string::npos;
  }
  const bool keys = container.is(Kind::kDictView) && container.dict_view().part() == DictView::Part::kKeys;
  if (container.is(Kind::kDict) || keys) {
    if (!hashable(item)) return unhashable(item);
    const Dict& dict = keys ? container.dict_view().dict() : container.dict();
    return dict.find(item) != nullptr;
  }
  QUIRE_ASSIGN_OR_RETURN(const auto items, iterate(runtime, container));
  while (true) {
    QUIRE_ASSIGN_OR_RETURN(const auto next, items->next(runtime));
    if (!next) return false;
    QUIRE_ASSIGN_OR_RETURN(const bool same, equal(runtime, *next, item));
    if (same) return true;
  }
}

bool same_object(const Value& left, const Value& right) {
  if (left.kind() != right.kind()) return false;
  if (left.object() != nullptr) return left.object() == right.object();
  return left.is(Kind::kFloat) ? left.as_float() == right.as_float() : left.as_int() == right.as_int();
}

Result<std::vector<size_t>> sorted_order(Runtime& runtime, const std::vector<Value>& keys, bool reverse) {
  std::vector<size_t> order(keys.size());
  std::iota(order.begin(), order.end(), size_t{0});
  QUIRE_RETURN_IF_ERROR(merge_sort(runtime, keys, reverse, order, 0, order.size()));
  return order;
}

}  // namespace quire::jinja
