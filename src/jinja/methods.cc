#include "jinja/methods.h"

#include "jinja/string_functions.h"

namespace quire::jinja {
namespace {

constexpr Builtin kOfString[] = {
    {"capitalize", "/", capitalize},
    {"count", "sub /", count_text},
    {"endswith", "suffix /", ends_with},
    {"find", "sub /", find_text},
    {"join", "iterable /", join},
    {"lower", "/", lower},
    {"lstrip", "chars? /", strip_left},
    {"removeprefix", "prefix /", remove_prefix},
    {"removesuffix", "suffix /", remove_suffix},
    {"replace", "old new count? /", replace},
    {"rfind", "sub /", find_last_text},
    {"rsplit", "sep? maxsplit?", split_last},
    {"rstrip", "chars? /", strip_right},
    {"split", "sep? maxsplit?", split},
    {"splitlines", "keepends?", split_lines},
    {"startswith", "prefix /", starts_with},
    {"strip", "chars? /", strip},
    {"title", "/", title},
    {"upper", "/", upper},
};

Result<Value> get(Call& call) {
  if (!hashable(call.args[0])) return unhashable(call.args[0]);
  if (const Value* value = call.subject.dict().find(call.args[0])) return *value;
  return call.given(1) ? call.args[1] : Value::none();
}

template <DictView::Part kPart>
Result<Value> view(Call& call) {
  return Value(Kind::kDictView, call.heap().make<DictView>(call.subject, kPart));
}

constexpr Builtin kOfDict[] = {
    {"get", "key default? /", get},
    {"items", "/", view<DictView::Part::kItems>},
    {"keys", "/", view<DictView::Part::kKeys>},
    {"values", "/", view<DictView::Part::kValues>},
};

}  // namespace

const Builtin* find_method(Kind kind, std::string_view name) {
  if (kind == Kind::kString) return find_builtin(kOfString, name);
  return kind == Kind::kDict ? find_builtin(kOfDict, name) : nullptr;
}

bool is_method(std::string_view name) {
  return find_builtin(kOfString, name) != nullptr || find_builtin(kOfDict, name) != nullptr;
}

}  // namespace quire::jinja
