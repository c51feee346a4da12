#include "jinja/globals.h"

#include "jinja/attributes.h"
#include "jinja/iteration.h"
#include "jinja/strftime.h"
#include "jinja/string_functions.h"
#include "jinja/value_text.h"

namespace quire::jinja {
namespace {

Result<Value> range(Call& call) {
  const auto& arguments = call.rest.positional;
  if (!call.rest.named.empty() || arguments.empty() || arguments.size() > 3) {
    return invalid_argument("range takes one to three integers");
  }
  int64_t bounds[3] = {0, 0, 1};
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].is(Kind::kUndefined)) return invalid_argument(arguments[i].undefined_message());
    if (!arguments[i].is_integral()) {
      return invalid_argument("range wants integers, not " + quoted(type_name(arguments[i])));
    }
    const Int bound = arguments[i].as_int();
    if (bound > INT64_MAX || bound < INT64_MIN) return out_of_range("a bound of range is too large");
    bounds[arguments.size() == 1 ? 1 : i] = static_cast<int64_t>(bound);
  }
  if (bounds[2] == 0) return invalid_argument("the step of range must not be zero");
  const Int span = bounds[2] > 0 ? Int{bounds[1]} - bounds[0] : Int{bounds[0]} - bounds[1];
  const Int stride = bounds[2] > 0 ? Int{bounds[2]} : -Int{bounds[2]};
  if ((span + stride - 1) / stride > kMaxRangeItems) {
    return out_of_range("range spans more than " + std::to_string(kMaxRangeItems) + " items");
  }
  return Value(Kind::kRange, call.heap().make<Range>(bounds[0], bounds[1], bounds[2]));
}

// The arguments of dict() and namespace(): a dict or pairs, then named values.
Result<Dict::Entries> dict_arguments(Call& call) {
  Dict::Entries entries;
  if (call.rest.positional.size() > 1) return invalid_argument("dict and namespace take one positional argument");
  if (!call.rest.positional.empty()) {
    const Value& source = call.rest.positional[0];
    if (source.is(Kind::kUndefined)) return invalid_argument(source.undefined_message());
    if (source.is(Kind::kDict)) {
      entries = source.dict().entries();
    } else {
      QUIRE_ASSIGN_OR_RETURN(const auto pairs, collect(call.runtime, source));
      for (const Value& pair_value : pairs) {
        QUIRE_ASSIGN_OR_RETURN(const auto pair, collect(call.runtime, pair_value));
        if (pair.size() != 2) return invalid_argument("dict and namespace want pairs of a key and a value");
        if (!hashable(pair[0])) return invalid_argument("unhashable type: " + quoted(type_name(pair[0])));
        entries.emplace_back(pair[0], pair[1]);
      }
    }
  }
  for (auto& [name, value] : call.rest.named) entries.emplace_back(Value::string(call.heap(), name), value);
  QUIRE_RETURN_IF_ERROR(call.runtime.charge(entries.size()));
  return entries;
}

Result<Value> dict(Call& call) {
  QUIRE_ASSIGN_OR_RETURN(auto entries, dict_arguments(call));
  return make_dict(call.heap(), std::move(entries));
}

Result<Value> name_space(Call& call) {
  QUIRE_ASSIGN_OR_RETURN(const auto entries, dict_arguments(call));
  const auto created = call.heap().make<Namespace>();
  for (const auto& [key, value] : entries) {
    QUIRE_RETURN_IF_ERROR(call.runtime.charge(created->attributes().size()));
    created->set(key, value);
  }
  return Value(Kind::kNamespace, created);
}

class Cycler : public Native {
 public:
  Cycler(Heap& heap, std::vector<Value> items) : Native(heap), items_(std::move(items)) {
    charge(items_.capacity() * sizeof(Value));
  }
  std::string_view type_name() const override { return "Cycler"; }
  Result<std::optional<Value>> attribute(Runtime& runtime, std::string_view name) override;
  Value current() const { return items_[at_]; }
  Value advance() {
    Value item = current();
    at_ = (at_ + 1) % items_.size();
    return item;
  }
  void reset() { at_ = 0; }
  void drop_references() override { items_.clear(); }

 private:
  std::vector<Value> items_;
  size_t at_ = 0;
};

Result<Value> next_of_cycler(Call& call) { return static_cast<Cycler&>(call.subject.native()).advance(); }

Result<Value> reset_cycler(Call& call) {
  static_cast<Cycler&>(call.subject.native()).reset();
  return Value::none();
}

constexpr Builtin kCyclerMethods[] = {{"next", "/", next_of_cycler}, {"reset", "/", reset_cycler}};

Result<std::optional<Value>> Cycler::attribute(Runtime& runtime, std::string_view name) {
  if (name == "current") return std::optional<Value>(current());
  if (name == "pos") return std::optional<Value>(Value::integer(static_cast<Int>(at_)));
  if (name == "items") return std::optional<Value>(make_tuple(runtime.heap(), items_));
  const Builtin* method = find_builtin(kCyclerMethods, name);
  if (method == nullptr) return std::optional<Value>();
  return std::optional<Value>(make_function(runtime.heap(), *method, Value(Kind::kNative, Ref<Native>(this))));
}

Result<Value> cycler(Call& call) {
  if (!call.rest.named.empty()) return invalid_argument("cycler takes no named arguments");
  if (call.rest.positional.empty()) return invalid_argument("cycler wants at least one item");
  return Value(Kind::kNative, call.heap().make<Cycler>(std::move(call.rest.positional)));
}

class Joiner : public Native {
 public:
  Joiner(Heap& heap, Value separator) : Native(heap), separator_(std::move(separator)) {}
  std::string_view type_name() const override { return "Joiner"; }
  bool callable() const override { return true; }
  Result<Value> call(Runtime& runtime, Arguments arguments) override {
    if (!arguments.positional.empty() || !arguments.named.empty()) {
      return invalid_argument("a joiner takes no arguments");
    }
    if (used_) return separator_;
    used_ = true;
    return runtime.string("");
  }
  Result<std::optional<Value>> attribute(Runtime&, std::string_view name) override {
    if (name == "sep") return std::optional<Value>(separator_);
    if (name == "used") return std::optional<Value>(Value::boolean(used_));
    return std::optional<Value>();
  }

 private:
  Value separator_;
  bool used_ = false;
};

Result<Value> joiner(Call& call) {
  Value separator = call.given(0) ? call.args[0] : call.runtime.string(", ");
  return Value(Kind::kNative, call.heap().make<Joiner>(std::move(separator)));
}

Result<Value> raise_exception(Call& call) {
  TextBuilder message;
  QUIRE_RETURN_IF_ERROR(append_str(call.runtime, call.args[0], message));
  return invalid_argument(message.take().bytes);
}

Result<Value> strftime_now(Call& call) {
  QUIRE_ASSIGN_OR_RETURN(const Value format, string_argument(call, 0, "strftime_now"));
  QUIRE_ASSIGN_OR_RETURN(const std::string text, format_time(format.text().bytes, call.runtime.now()));
  return call.runtime.string(text, format.text().joint_origin());
}

constexpr Builtin kGlobals[] = {
    {"cycler", "*", cycler},
    {"dict", "*", dict},
    {"joiner", "sep?", joiner},
    {"namespace", "*", name_space},
    {"raise_exception", "message", raise_exception},
    {"range", "*", range},
    {"strftime_now", "format", strftime_now},
};

}  // namespace

std::optional<Value> find_global(Heap& heap, std::string_view name) {
  const Builtin* global = find_builtin(kGlobals, name);
  return global == nullptr ? std::nullopt : std::optional<Value>(make_function(heap, *global));
}

}  // namespace quire::jinja
