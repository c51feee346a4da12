// map, select, reject and their attr forms: filters that apply another filter or test to each item.
#include "jinja/attributes.h"
#include "jinja/compare.h"
#include "jinja/filters.h"
#include "jinja/is_tests.h"
#include "jinja/iteration.h"
#include "jinja/known.h"

namespace quire::jinja {
namespace {

// What becomes of an item; nothing: it is left out.
using Step = std::function<Result<std::optional<Value>>(Runtime&, const Value&)>;

Result<std::string> name_argument(const Arguments& arguments, size_t index) {
  const Value& name = arguments.positional[index];
  if (name.is(Kind::kString)) return name.text().bytes;
  return invalid_argument("the name of a filter or test is a string, not " + quoted(type_name(name)));
}

Arguments without_first(const Arguments& arguments, size_t count) {
  Arguments rest = arguments;
  rest.positional.erase(rest.positional.begin(), rest.positional.begin() + static_cast<ptrdiff_t>(count));
  return rest;
}

Result<Step> map_by_attribute(const Arguments& arguments) {
  Value path, fallback;
  for (const auto& [name, value] : arguments.named) {
    if (name.bytes != "attribute" && name.bytes != "default") {
      return invalid_argument("map takes no argument '" + name.bytes + "'");
    }
    (name.bytes == "attribute" ? path : fallback) = value;
  }
  if (path.is(Kind::kMissing)) return invalid_argument("map wants the name of a filter");
  return Step([path, fallback](Runtime& runtime, const Value& item) -> Result<std::optional<Value>> {
    QUIRE_ASSIGN_OR_RETURN(Value value, get_path(runtime, item, path, fallback));
    return std::optional<Value>(std::move(value));
  });
}

Result<Step> map_step(const Arguments& arguments) {
  if (arguments.positional.empty()) return map_by_attribute(arguments);
  QUIRE_ASSIGN_OR_RETURN(const std::string name, name_argument(arguments, 0));
  const Builtin* filter = find_filter(name);
  if (filter == nullptr) return not_known("filter", name);
  return Step([filter, rest = without_first(arguments, 1)](Runtime& runtime,
                                                           const Value& item) -> Result<std::optional<Value>> {
    QUIRE_ASSIGN_OR_RETURN(Value value, invoke(runtime, *filter, item, rest));
    return std::optional<Value>(std::move(value));
  });
}

// Lets those items through that pass the test (or are true, without one), or those that do not.
Result<Step> select_step(const Arguments& arguments, bool wanted, bool by_attribute) {
  const size_t name_index = by_attribute ? 1 : 0;
  if (arguments.positional.size() < name_index) return invalid_argument("the name of an attribute is missing");
  const Value path = by_attribute ? arguments.positional[0] : Value();
  const Builtin* test = nullptr;
  Arguments rest;
  if (arguments.positional.size() > name_index) {
    QUIRE_ASSIGN_OR_RETURN(const std::string name, name_argument(arguments, name_index));
    test = find_test(name);
    if (test == nullptr) return not_known("test", name);
    rest = without_first(arguments, name_index + 1);
  }
  return Step([=](Runtime& runtime, const Value& item) -> Result<std::optional<Value>> {
    QUIRE_ASSIGN_OR_RETURN(Value value, get_path(runtime, item, path));
    if (test != nullptr) {
      QUIRE_ASSIGN_OR_RETURN(value, invoke(runtime, *test, std::move(value), rest));
    }
    return truthy(value) == wanted ? std::optional<Value>(item) : std::nullopt;
  });
}

// The filter's arguments are looked at when the first item is asked for, as in Python.
Value each_item(Call& call, std::function<Result<Step>(const Arguments&)> make_step) {
  Ref<Iterator> source;
  Step step;
  return make_generator(
      call.heap(),
      [=, subject = call.subject, arguments = call.rest](Runtime& runtime) mutable -> Result<std::optional<Value>> {
        if (!source) {
          if (!truthy(subject)) return std::optional<Value>();
          QUIRE_ASSIGN_OR_RETURN(step, make_step(arguments));
          QUIRE_ASSIGN_OR_RETURN(source, iterate(runtime, subject));
        }
        while (true) {
          QUIRE_ASSIGN_OR_RETURN(const auto item, source->next(runtime));
          if (!item) return item;
          QUIRE_ASSIGN_OR_RETURN(auto made, step(runtime, *item));
          if (made) return made;
        }
      });
}

Result<Value> map(Call& call) { return each_item(call, map_step); }

template <bool kWanted, bool kByAttribute>
Result<Value> select(Call& call) {
  return each_item(call, [](const Arguments& arguments) { return select_step(arguments, kWanted, kByAttribute); });
}

constexpr Builtin kFilters[] = {
    {"map", "*", map},
    {"reject", "*", select<false, false>},
    {"rejectattr", "*", select<false, true>},
    {"select", "*", select<true, false>},
    {"selectattr", "*", select<true, true>},
};

}  // namespace

std::span<const Builtin> selection_filters() { return kFilters; }

}  // namespace quire::jinja
