// Filters that take a sequence apart, order it or pick from it.
#include <algorithm>
#include <set>

#include "jinja/attributes.h"
#include "jinja/characters.h"
#include "jinja/compare.h"
#include "jinja/filters.h"
#include "jinja/iteration.h"
#include "jinja/string_functions.h"

namespace quire::jinja {
namespace {

Result<Value> first(Call& call) {
  QUIRE_ASSIGN_OR_RETURN(const auto items, iterate(call.runtime, call.subject));
  QUIRE_ASSIGN_OR_RETURN(auto item, items->next(call.runtime));
  return item ? std::move(*item) : call.runtime.undefined("No first item, sequence was empty.");
}

Result<Value> last(Call& call) {
  QUIRE_ASSIGN_OR_RETURN(const Value backwards, reversed(call.runtime, call.subject));
  QUIRE_ASSIGN_OR_RETURN(auto item, backwards.iterator().next(call.runtime));
  return item ? std::move(*item) : call.runtime.undefined("No last item, sequence was empty.");
}

Result<Value> list(Call& call) {
  QUIRE_ASSIGN_OR_RETURN(auto items, collect(call.runtime, call.subject));
  return make_list(call.heap(), std::move(items));
}

Result<Value> reverse(Call& call) {
  if (call.subject.is(Kind::kString)) {
    return get_slice(call.runtime, call.subject, {{}, {}, Value::integer(-1)});
  }
  if (!call.subject.is(Kind::kIterator)) return reversed(call.runtime, call.subject);
  QUIRE_ASSIGN_OR_RETURN(auto items, collect(call.runtime, call.subject));
  std::reverse(items.begin(), items.end());
  return make_list(call.heap(), std::move(items));
}

Result<Value> default_value(Call& call) {
  const bool replaces_false = call.given(1) && truthy(call.args[1]);
  const bool absent = call.subject.is(Kind::kUndefined) || (replaces_false && !truthy(call.subject));
  if (!absent) return call.subject;
  return call.given(0) ? call.args[0] : call.runtime.string("");
}

Result<Value> items(Call& call) {
  const Value subject = call.subject;
  return make_deferred(call.heap(), [subject](Runtime& runtime) -> Result<std::vector<Value>> {
    std::vector<Value> pairs;
    if (subject.is(Kind::kUndefined)) return pairs;
    if (!subject.is(Kind::kDict)) return invalid_argument("items wants a dict");
    QUIRE_RETURN_IF_ERROR(runtime.charge(subject.dict().entries().size()));
    for (const auto& [key, value] : subject.dict().entries()) {
      pairs.push_back(make_tuple(runtime.heap(), {key, value}, subject.dict().origin()));
    }
    return pairs;
  });
}

// What values are compared by where case does not matter.
Result<Value> ignore_case(Runtime& runtime, const Value& value) {
  if (!value.is(Kind::kString)) return value;
  TextBuilder out;
  map_case(value.text(), Case::kLower, out, runtime.meter());
  return runtime.string(std::move(out));
}

// The attribute `path` of an item as a key of comparison.
Result<Value> sort_key(Runtime& runtime, const Value& item, const Value& path, bool case_sensitive) {
  QUIRE_ASSIGN_OR_RETURN(const Value key, get_path(runtime, item, path));
  return case_sensitive ? Result<Value>(key) : ignore_case(runtime, key);
}

// Python sorts by a list of keys here, in which equal undefined values have an order.
Result<Value> sort_key_list(Runtime& runtime, const Value& item, const Value& paths, bool case_sensitive) {
  std::vector<Value> keys;
  if (!paths.is(Kind::kString)) {
    QUIRE_ASSIGN_OR_RETURN(keys.emplace_back(), sort_key(runtime, item, paths, case_sensitive));
    return make_list(runtime.heap(), std::move(keys));
  }
  std::string_view rest = paths.text().bytes;
  while (true) {
    const size_t comma = rest.find(',');
    QUIRE_ASSIGN_OR_RETURN(keys.emplace_back(),
                           sort_key(runtime, item, runtime.string(rest.substr(0, comma)), case_sensitive));
    if (comma == std::string_view::npos) return make_list(runtime.heap(), std::move(keys));
    rest.remove_prefix(comma + 1);
  }
}

Result<std::vector<Value>> sorted_by(Runtime& runtime, std::vector<Value> items, const std::vector<Value>& keys,
                                     bool reversed_order) {
  QUIRE_ASSIGN_OR_RETURN(const auto order, sorted_order(runtime, keys, reversed_order));
  std::vector<Value> sorted;
  sorted.reserve(items.size());
  for (const size_t at : order) sorted.push_back(items[at]);
  return sorted;
}

Result<Value> sort(Call& call) {
  const bool descending = call.given(0) && truthy(call.args[0]);
  const bool case_sensitive = call.given(1) && truthy(call.args[1]);
  QUIRE_ASSIGN_OR_RETURN(auto items, collect(call.runtime, call.subject));
  std::vector<Value> keys;
  for (const Value& item : items) {
    QUIRE_ASSIGN_OR_RETURN(keys.emplace_back(), sort_key_list(call.runtime, item, call.args[2], case_sensitive));
  }
  QUIRE_ASSIGN_OR_RETURN(auto sorted, sorted_by(call.runtime, std::move(items), keys, descending));
  return make_list(call.heap(), std::move(sorted));
}

Result<Value> dict_sort(Call& call) {
  if (call.subject.is(Kind::kUndefined)) return invalid_argument(call.subject.undefined_message());
  if (!call.subject.is(Kind::kDict)) return invalid_argument("dictsort wants a dict");
  const bool case_sensitive = call.given(0) && truthy(call.args[0]);
  std::string by = "key";
  if (call.given(1)) {
    QUIRE_ASSIGN_OR_RETURN(const Value name, string_argument(call, 1, "dictsort"));
    by = name.text().bytes;
  }
  if (by != "key" && by != "value") return invalid_argument("dictsort sorts by 'key' or 'value'");
  std::vector<Value> pairs, keys;
  for (const auto& [key, value] : call.subject.dict().entries()) {
    pairs.push_back(make_tuple(call.heap(), {key, value}, call.subject.dict().origin()));
    const Value& sorts = by == "key" ? key : value;
    QUIRE_ASSIGN_OR_RETURN(keys.emplace_back(),
                           case_sensitive ? Result<Value>(sorts) : ignore_case(call.runtime, sorts));
  }
  const bool descending = call.given(2) && truthy(call.args[2]);
  QUIRE_ASSIGN_OR_RETURN(auto sorted, sorted_by(call.runtime, std::move(pairs), keys, descending));
  return make_list(call.heap(), std::move(sorted));
}

Result<Value> extreme(Call& call, bool largest) {
  QUIRE_ASSIGN_OR_RETURN(const auto items, collect(call.runtime, call.subject));
  if (items.empty()) return call.runtime.undefined("No aggregated item, sequence was empty.");
  const bool case_sensitive = call.given(0) && truthy(call.args[0]);
  size_t best = 0;
  Value best_key;
  for (size_t i = 0; i < items.size(); ++i) {
    QUIRE_ASSIGN_OR_RETURN(const Value key, sort_key(call.runtime, items[i], call.args[1], case_sensitive));
    if (i > 0) {
      QUIRE_ASSIGN_OR_RETURN(const auto order, compare(call.runtime, key, best_key));
      if (!order || (largest ? *order <= 0 : *order >= 0)) continue;
    }
    best = i;
    best_key = key;
  }
  return items[best];
}

Result<Value> smallest(Call& call) { return extreme(call, false); }
Result<Value> largest(Call& call) { return extreme(call, true); }

Result<Value> batch(Call& call) {
  QUIRE_ASSIGN_OR_RETURN(const Int size, int_argument(call, 0, 0));
  if (size < 1 || size > static_cast<Int>(kMaxListItems)) return out_of_range("batch is too short or too long");
  const Value subject = call.subject, fill = call.args[1];
  const bool fills = call.given_not_none(1);
  return make_deferred(call.heap(), [=](Runtime& runtime) -> Result<std::vector<Value>> {
    QUIRE_ASSIGN_OR_RETURN(const auto items, collect(runtime, subject));
    std::vector<Value> batches, current;
    for (size_t i = 0; i < items.size(); ++i) {
      current.push_back(items[i]);
      const bool last = i + 1 == items.size();
      while (last && fills && static_cast<Int>(current.size()) < size) current.push_back(fill);
      if (!last && static_cast<Int>(current.size()) < size) continue;
      batches.push_back(make_list(runtime.heap(), std::move(current)));
      current.clear();
    }
    return batches;
  });
}

Result<Value> unique(Call& call) {
  struct KeyOrder {
    bool operator()(const Value& left, const Value& right) const { return compare_keys(left, right) < 0; }
  };
  const Value subject = call.subject, path = call.args[1];
  const bool case_sensitive = call.given(0) && truthy(call.args[0]);
  Ref<Iterator> source;
  std::set<Value, KeyOrder> seen;
  return make_generator(call.heap(), [=](Runtime& runtime) mutable -> Result<std::optional<Value>> {
    if (!source) {
      QUIRE_ASSIGN_OR_RETURN(source, iterate(runtime, subject));
    }
    while (true) {
      QUIRE_ASSIGN_OR_RETURN(auto item, source->next(runtime));
      if (!item) return item;
      QUIRE_ASSIGN_OR_RETURN(const Value key, sort_key(runtime, *item, path, case_sensitive));
      if (!hashable(key)) return unhashable(key);
      if (!seen.insert(key).second) continue;
      return item;
    }
  });
}

constexpr Builtin kFilters[] = {
    {"batch", "linecount fill_with?", batch},
    {"d", "default_value? boolean?", default_value},
    {"default", "default_value? boolean?", default_value},
    {"dictsort", "case_sensitive? by? reverse?", dict_sort},
    {"first", "", first},
    {"items", "", items},
    {"last", "", last},
    {"list", "", list},
    {"max", "case_sensitive? attribute?", largest},
    {"min", "case_sensitive? attribute?", smallest},
    {"reverse", "", reverse},
    {"sort", "reverse? case_sensitive? attribute?", sort},
    {"unique", "case_sensitive? attribute?", unique},
};

}  // namespace

std::span<const Builtin> sequence_filters() { return kFilters; }

}  // namespace quire::jinja
