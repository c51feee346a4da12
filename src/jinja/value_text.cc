#include "jinja/value_text.h"

#include <cstdio>

#include "jinja/characters.h"
#include "jinja/number.h"

namespace quire::jinja {
namespace {

void append_hex_escape(char32_t c, Origin origin, TextBuilder& out) {
  char escape[16];
  const char* format = c <= 0xFF ? "\\x%02x" : c <= 0xFFFF ? "\\u%04x" : "\\U%08x";
  std::snprintf(escape, sizeof escape, format, static_cast<unsigned>(c));
  out.append(escape, origin);
}

void append_quoted(Runtime& runtime, const Text& text, Origin origin, TextBuilder& out) {
  const bool has_single = text.bytes.find('\'') != std::string::npos;
  const char quote = has_single && text.bytes.find('"') == std::string::npos ? '"' : '\'';
  const std::string_view quote_text(&quote, 1);
  out.append(quote_text, origin);
  size_t at = 0;
  text.for_each_run(0, text.bytes.size(), [&](size_t, size_t end, Origin author) {
    while (at < end && !runtime.meter().spent()) {
      const size_t begin = at;
      const char32_t c = next_code_point(text.bytes, at);
      const std::string_view itself = std::string_view(text.bytes).substr(begin, at - begin);
      if (c == '\\' || c == static_cast<char32_t>(quote)) {
        out.append("\\", author);
        out.append(itself, author);
      } else if (c == '\n' || c == '\r' || c == '\t') {
        out.append(c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t", author);
      } else if (is_printable(c)) {
        out.append(itself, author);
      } else {
        append_hex_escape(c, author, out);
      }
    }
  });
  out.append(quote_text, origin);
}

Status append_items(Runtime& runtime, const Value& value, TextBuilder& out) {
  const Sequence& sequence = value.sequence();
  const bool tuple = value.is(Kind::kTuple);
  const Origin origin = sequence.origin();
  out.append(tuple ? "(" : "[", origin);
  bool first = true;
  for (const Value& item : sequence.items()) {
    if (!first) out.append(", ", origin);
    first = false;
    QUIRE_RETURN_IF_ERROR(append_repr(runtime, item, origin, out));
  }
  if (tuple && sequence.items().size() == 1) out.append(",", origin);
  out.append(tuple ? ")" : "]", origin);
  return Status();
}

Status append_dict(Runtime& runtime, const Dict& dict, TextBuilder& out) {
  const Origin origin = dict.origin();
  out.append("{", origin);
  bool first = true;
  for (const auto& [key, item] : dict.entries()) {
    if (!first) out.append(", ", origin);
    first = false;
    QUIRE_RETURN_IF_ERROR(append_repr(runtime, key, origin, out));
    out.append(": ", origin);
    QUIRE_RETURN_IF_ERROR(append_repr(runtime, item, origin, out));
  }
  out.append("}", origin);
  return Status();
}

Status append_view(Runtime& runtime, const Value& value, TextBuilder& out) {
  const DictView& view = value.dict_view();
  const Origin origin = view.dict().origin();
  out.append(type_name(value), origin);
  out.append("([", origin);
  for (size_t i = 0; i < view.dict().entries().size(); ++i) {
    if (i > 0) out.append(", ", origin);
    QUIRE_RETURN_IF_ERROR(append_repr(runtime, view.at(i), origin, out));
  }
  out.append("])", origin);
  return Status();
}

Status append_namespace(Runtime& runtime, const Namespace& name_space, TextBuilder& out) {
  out.append("<Namespace {", Origin::kTemplate);
  bool first = true;
  for (const auto& [name, value] : name_space.attributes()) {
    if (!first) out.append(", ", Origin::kTemplate);
    first = false;
    QUIRE_RETURN_IF_ERROR(append_repr(runtime, name, Origin::kTemplate, out));
    out.append(": ", Origin::kTemplate);
    QUIRE_RETURN_IF_ERROR(append_repr(runtime, value, Origin::kTemplate, out));
  }
  out.append("}>", Origin::kTemplate);
  return Status();
}

std::string range_text(const Range& range) {
  std::string text = "range(" + std::to_string(range.start()) + ", " + std::to_string(range.stop());
  if (range.step() != 1) text += ", " + std::to_string(range.step());
  return text + ")";
}

}  // namespace

Status append_str(Runtime& runtime, const Value& value, TextBuilder& out) {
  if (value.is(Kind::kUndefined)) return Status();
  if (value.is(Kind::kString)) {
    out.append(value.text());
    return runtime.charge_bytes(value.text().bytes.size());
  }
  return append_repr(runtime, value, Origin::kTemplate, out);
}

Status append_repr(Runtime& runtime, const Value& value, Origin origin, TextBuilder& out) {
  const DepthGuard guard(runtime);
  QUIRE_RETURN_IF_ERROR(guard.status());
  QUIRE_RETURN_IF_ERROR(runtime.charge(1));
  origin = joint_origin(origin, value.origin());
  switch (value.kind()) {
    case Kind::kMissing:
    case Kind::kUndefined:
      out.append("Undefined", origin);
      break;
    case Kind::kNone:
      out.append("None", origin);
      break;
    case Kind::kBool:
      out.append(value.as_bool() ? "True" : "False", origin);
      break;
    case Kind::kInt:
      out.append(std::to_string(value.as_int()), origin);
      break;
    case Kind::kFloat:
      out.append(float_text(value.as_float()), origin);
      break;
    case Kind::kString:
      QUIRE_RETURN_IF_ERROR(refuse_safe(value));
      append_quoted(runtime, value.text(), origin, out);
      return runtime.charge_bytes(value.text().bytes.size());
    case Kind::kList:
    case Kind::kTuple:
      return append_items(runtime, value, out);
    case Kind::kDict:
      return append_dict(runtime, value.dict(), out);
    case Kind::kDictView:
      return append_view(runtime, value, out);
    case Kind::kRange:
      out.append(range_text(value.range()), origin);
      break;
    case Kind::kNamespace:
      return append_namespace(runtime, value.name_space(), out);
    case Kind::kIterator:
      out.append("<generator object>", origin);
      break;
    case Kind::kNative:
      out.append(value.native().repr(), origin);
      break;
  }
  return Status();
}

Result<Value> to_string(Runtime& runtime, const Value& value) {
  if (value.is(Kind::kString)) return value;
  TextBuilder out;
  QUIRE_RETURN_IF_ERROR(append_str(runtime, value, out));
  return runtime.string(std::move(out));
}

Status refuse_safe(const Value& value) {
  if (!value.is(Kind::kString) || !value.text().safe) return Status();
  return unsupported("a text of the filter 'safe' is only to be printed or joined by '~' in quire");
}

}  // namespace quire::jinja
