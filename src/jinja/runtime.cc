#include "jinja/runtime.h"

namespace quire::jinja {
namespace {

class Function : public Native {
 public:
  Function(Heap& heap, const Builtin& builtin, Value subject)
      : Native(heap), builtin_(builtin), subject_(std::move(subject)) {}

  std::string_view type_name() const override { return "builtin_function_or_method"; }
  std::string repr() const override { return "<built-in function " + std::string(builtin_.name) + ">"; }
  Result<Value> call(Runtime& runtime, Arguments arguments) override {
    return invoke(runtime, builtin_, subject_, std::move(arguments));
  }

 private:
  const Builtin& builtin_;
  Value subject_;
};

struct Parameter {
  std::string_view name;
  bool optional;
};

struct Signature {
  std::vector<Parameter> parameters;
  bool positional_only = false;
};

Signature parse_signature(std::string_view text) {
  Signature signature;
  while (!text.empty()) {
    const size_t space = text.find(' ');
    std::string_view word = text.substr(0, space);
    text = space == std::string_view::npos ? std::string_view() : text.substr(space + 1);
    if (word == "/") {
      signature.positional_only = true;
      continue;
    }
    const bool optional = word.back() == '?';
    if (optional) word.remove_suffix(1);
    signature.parameters.push_back({word, optional});
  }
  return signature;
}

Result<std::vector<Value>> bind(const Builtin& builtin, Arguments arguments) {
  const Signature signature = parse_signature(builtin.parameters);
  const auto& parameters = signature.parameters;
  const std::string name(builtin.name);
  if (arguments.positional.size() > parameters.size()) {
    return invalid_argument(name + "() takes at most " + std::to_string(parameters.size()) + " arguments, got " +
                            std::to_string(arguments.positional.size()));
  }
  std::vector<Value> bound = std::move(arguments.positional);
  bound.resize(parameters.size());
  for (auto& [key, value] : arguments.named) {
    size_t at = 0;
    while (at < parameters.size() && parameters[at].name != key.bytes) ++at;
    if (at == parameters.size() || signature.positional_only) {
      return invalid_argument(name + "() takes no keyword argument '" + key.bytes + "'");
    }
    if (!bound[at].is(Kind::kMissing)) {
      return invalid_argument(name + "() got two values for the argument '" + key.bytes + "'");
    }
    bound[at] = std::move(value);
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (bound[i].is(Kind::kMissing) && !parameters[i].optional) {
      return invalid_argument(name + "() misses the argument '" + std::string(parameters[i].name) + "'");
    }
  }
  return bound;
}

}  // namespace

Status Runtime::charge(size_t steps) {
  if (steps > static_cast<size_t>(steps_left_)) {
    steps_left_ = 0;
    return out_of_range("the template takes more than " + std::to_string(kMaxSteps) + " steps");
  }
  steps_left_ -= static_cast<int64_t>(steps);
  if (meter_.spent(steps + 1)) return meter_.why();
  if (heap_.exhausted()) {
    return resource_exhausted("the template holds more than " + std::to_string(kMaxLiveBytes >> 20) + " MiB of values");
  }
  return Status();
}

Status Runtime::enter() {
  ++depth_;
  if (depth_ > kMaxCallDepth) {
    return out_of_range("the template recurses deeper than " + std::to_string(kMaxCallDepth) + " evaluations");
  }
  return Status();
}

Result<Value> Runtime::string(TextBuilder builder) {
  QUIRE_RETURN_IF_ERROR(charge_bytes(builder.size()));
  if (builder.overflowed()) {
    return out_of_range("the template builds a string longer than " + std::to_string(kMaxValueBytes >> 20) + " MiB");
  }
  return Value::string(heap_, builder.take());
}

Result<Value> Runtime::call(const Value& callee, Arguments arguments) {
  if (callee.is(Kind::kUndefined)) return invalid_argument(callee.undefined_message());
  if (!callee.is(Kind::kNative)) {
    return invalid_argument("a value of type " + quoted(type_name(callee)) + " is not callable");
  }
  // The callee may be overwritten by what it calls.
  const Value keep_alive = callee;
  return callee.native().call(*this, std::move(arguments));
}

const Builtin* find_builtin(std::span<const Builtin> table, std::string_view name) {
  for (const Builtin& builtin : table) {
    if (builtin.name == name) return &builtin;
  }
  return nullptr;
}

Result<Value> invoke(Runtime& runtime, const Builtin& builtin, Value subject, Arguments arguments) {
  QUIRE_RETURN_IF_ERROR(runtime.charge(1));
  Call call{runtime, std::move(subject), {}, {}};
  if (builtin.parameters == "*") {
    call.rest = std::move(arguments);
  } else {
    QUIRE_ASSIGN_OR_RETURN(call.args, bind(builtin, std::move(arguments)));
  }
  return builtin.function(call);
}

Value make_function(Heap& heap, const Builtin& builtin, Value subject) {
  return Value(Kind::kNative, heap.make<Function>(builtin, std::move(subject)));
}

}  // namespace quire::jinja
