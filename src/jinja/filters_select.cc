// map, select, reject and their attr forms: filters that apply another filter or test to each item.
#include "jinja/attributes.h"
#include "jinja/compare.h"
#include "jinja/filters.h"
#include "jinja/is_tests.h"
#include "jinja/iteration.h"
#include "jinja/known.h"

namespace quire::jinja {
namespace {

using Transform = std::function<Result<Value>(Runtime&, const Value&)>;

Result<std::string> name_argument(const Value& name, std::string_view filter) {
  if (name.is(Kind::kString)) return name.text().bytes;
  return invalid_argument(std::string(filter) + " wants the name of a filter or test");
}

Arguments without_first(const Arguments& arguments, size_t count) {
  Arguments rest = arguments;
  rest.positional.erase(rest.positional.begin(), rest.positional.begin() + static_cast<ptrdiff_t>(count));
  return rest;
}

Result<Transform> map_by_attribute(const Arguments& arguments) {
  Value path, fallback;
  for (const auto& [name, value] : arguments.named) {
    if (name.bytes == "attribute") {
      path = value;
    } else if (name.bytes == "default") {
      fallback = value;
    } else {
      return invalid_argument("map takes no argument '" + name.bytes + "'");
    }
  }
  return Transform(
      [path, fallback](Runtime& runtime, const Value& item) { return get_path(runtime, item, path, fallback); });
}

bool names_attribute(const Arguments& arguments) {
  for (const auto& [name, value] : arguments.named) {
    if (name.bytes == "attribute") return true;
  }
  return false;
}

Result<Transform> map_transform(const Arguments& arguments) {
  if (arguments.positional.empty() && names_attribute(arguments)) return map_by_attribute(arguments);
  if (arguments.positional.empty()) return invalid_argument("map wants the name of a filter");
  QUIRE_ASSIGN_OR_RETURN(const std::string name, name_argument(arguments.positional[0], "map"));
  const Builtin* filter = find_filter(name);
  if (filter == nullptr) return not_known("filter", name);
  return Transform([filter, rest = without_first(arguments, 1)](Runtime& runtime, const Value& item) {
    return invoke(runtime, *filter, item, rest);
  });
}

// The test of select and its like, as a transform that returns true or false.
Result<Transform> test_transform(const Arguments& arguments, bool by_attribute) {
  const size_t name_index = by_attribute ? 1 : 0;
  if (by_attribute && arguments.positional.empty()) return invalid_argument("the name of an attribute is missing");
  const Value path = by_attribute ? arguments.positional[0] : Value();
  const auto subject = [path, by_attribute](Runtime& runtime, const Value& item) {
    return by_attribute ? get_path(runtime, item, path) : Result<Value>(item);
  };
  if (arguments.positional.size() <= name_index) return Transform(subject);
  QUIRE_ASSIGN_OR_RETURN(const std::string name, name_argument(arguments.positional[name_index], "select"));
  const Builtin* test = find_test(name);
  if (test == nullptr) return not_known("test", name);
  return Transform(
      [=, rest = without_first(arguments, name_index + 1)](Runtime& runtime, const Value& item) -> Result<Value> {
        QUIRE_ASSIGN_OR_RETURN(const Value value, subject(runtime, item));
        return invoke(runtime, *test, value, rest);
      });
}

Result<Value> map(Call& call) {
  const Value subject = call.subject;
  const Arguments arguments = call.rest;
  Ref<Iterator> source;
  Transform transform;
  return make_generator(call.heap(), [=](Runtime& runtime) mutable -> Result<std::optional<Value>> {
    if (!source) {
      if (!truthy(subject)) return std::optional<Value>();
      QUIRE_ASSIGN_OR_RETURN(transform, map_transform(arguments));
      QUIRE_ASSIGN_OR_RETURN(source, iterate(runtime, subject));
    }
    QUIRE_ASSIGN_OR_RETURN(auto item, source->next(runtime));
    if (!item) return item;
    QUIRE_ASSIGN_OR_RETURN(item, transform(runtime, *item));
    return item;
  });
}

Result<Value> select_items(Call& call, bool wanted, bool by_attribute) {
  const Value subject = call.subject;
  const Arguments arguments = call.rest;
  Ref<Iterator> source;
  Transform test;
  return make_generator(call.heap(), [=](Runtime& runtime) mutable -> Result<std::optional<Value>> {
    if (!source) {
      if (!truthy(subject)) return std::optional<Value>();
      QUIRE_ASSIGN_OR_RETURN(test, test_transform(arguments, by_attribute));
      QUIRE_ASSIGN_OR_RETURN(source, iterate(runtime, subject));
    }
    while (true) {
      QUIRE_ASSIGN_OR_RETURN(auto item, source->next(runtime));
      if (!item) return item;
      QUIRE_ASSIGN_OR_RETURN(const Value passed, test(runtime, *item));
      if (truthy(passed) == wanted) return item;
    }
  });
}

Result<Value> select(Call& call) { return select_items(call, true, false); }
Result<Value> reject(Call& call) { return select_items(call, false, false); }
Result<Value> select_attribute(Call& call) { return select_items(call, true, true); }
Result<Value> reject_attribute(Call& call) { return select_items(call, false, true); }

constexpr Builtin kFilters[] = {
    {"map", "*", map},
    {"reject", "*", reject},
    {"rejectattr", "*", reject_attribute},
    {"select", "*", select},
    {"selectattr", "*", select_attribute},
};

}  // namespace

std::span<const Builtin> selection_filters() { return kFilters; }

}  // namespace quire::jinja
