#include <cmath>
#include <cstdio>

#include "jinja/compare.h"
#include "jinja/json.h"
#include "jinja/number.h"

namespace quire::jinja {
namespace {

class Writer {
 public:
  Writer(Runtime& runtime, const JsonStyle& style) : runtime_(runtime), style_(style) {}

  Status write(const Value& value, Origin origin) {
    const DepthGuard guard(runtime_);
    QUIRE_RETURN_IF_ERROR(guard.status());
    QUIRE_RETURN_IF_ERROR(runtime_.charge(1));
    switch (value.kind()) {
      case Kind::kString:
        write_string(value.text(), origin);
        return runtime_.charge_bytes(value.text().bytes.size());
      case Kind::kList:
      case Kind::kTuple:
        return write_list(value.sequence());
      case Kind::kDict:
        return write_dict(value.dict());
      default: {
        QUIRE_ASSIGN_OR_RETURN(const std::string scalar, scalar_text(value));
        out_.append(scalar, joint_origin(origin, value.origin()));
        return Status();
      }
    }
  }

  TextBuilder take() { return std::move(out_); }

 private:
  static Result<std::string> scalar_text(const Value& value) {
    switch (value.kind()) {
      case Kind::kNone:
        return std::string("null");
      case Kind::kBool:
        return std::string(value.as_bool() ? "true" : "false");
      case Kind::kInt:
        return std::to_string(value.as_int());
      case Kind::kFloat:
        if (std::isnan(value.as_float())) return std::string("NaN");
        if (std::isinf(value.as_float())) return std::string(value.as_float() < 0 ? "-Infinity" : "Infinity");
        return float_text(value.as_float());
      default:
        return invalid_argument("tojson: a value of type " + quoted(type_name(value)) + " is not JSON serializable");
    }
  }

  void write_escape(char32_t c, Origin origin) {
    char escape[16];
    if (c > 0xFFFF) {
      const unsigned offset = static_cast<unsigned>(c) - 0x10000;
      std::snprintf(escape, sizeof escape, "\\u%04x\\u%04x", 0xD800 + (offset >> 10), 0xDC00 + (offset & 0x3FF));
    } else {
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
    }
    out_.append(escape, origin);
  }

  static std::string_view short_escape(char32_t c) {
    constexpr std::string_view kMeant = "\"\\\n\r\t\f\b", kEscapes = "\\\"\\\\\\n\\r\\t\\f\\b";
    const size_t at = c < 0x80 ? kMeant.find(static_cast<char>(c)) : std::string_view::npos;
    return at == std::string_view::npos ? std::string_view() : kEscapes.substr(2 * at, 2);
  }

  void write_string(const Text& text, Origin quotes) {
    out_.append("\"", quotes);
    size_t at = 0;
    text.for_each_run(0, text.bytes.size(), [&](size_t begin, size_t end, Origin origin) {
      size_t plain = begin;
      while (at < end && !runtime_.meter().spent()) {
        const size_t start = at;
        const char32_t c = next_code_point(text.bytes, at);
        const std::string_view escape = short_escape(c);
        if (escape.empty() && c >= 0x20 && (c < 0x7F || !style_.ensure_ascii)) continue;
        out_.append(text, plain, start);
        plain = at;
        if (escape.empty()) {
          write_escape(c, origin);
        } else {
          out_.append(escape, origin);
        }
      }
      out_.append(text, plain, end);
    });
    out_.append("\"", quotes);
  }

  // Indentation and separators are the container's, unless the style has them from someone trusted less.
  void append_style(const Text& text, size_t count, Origin origin) {
    out_.append_repeated(text.bytes, count, joint_origin(origin, text.joint_origin()));
  }

  void new_line(Origin origin) {
    if (!style_.indented) return;
    out_.append("\n", origin);
    append_style(style_.indent, level_, origin);
  }

  Status write_list(const Sequence& list) {
    const Origin origin = list.origin();
    if (list.items().empty()) {
      out_.append("[]", origin);
      return Status();
    }
    out_.append("[", origin);
    ++level_;
    bool first = true;
    for (const Value& item : list.items()) {
      if (!first) append_style(style_.item_separator, 1, origin);
      first = false;
      new_line(origin);
      QUIRE_RETURN_IF_ERROR(write(item, origin));
    }
    --level_;
    new_line(origin);
    out_.append("]", origin);
    return Status();
  }

  Result<std::vector<size_t>> order_of(const Dict& dict) {
    std::vector<Value> keys;
    for (const auto& [key, value] : dict.entries()) keys.push_back(key);
    return sorted_order(runtime_, keys, false);
  }

  Status write_key(const Value& key, Origin origin) {
    if (key.is(Kind::kString)) {
      write_string(key.text(), origin);
      return Status();
    }
    if (key.is(Kind::kTuple)) return invalid_argument("tojson: keys must be strings, numbers, booleans or none");
    QUIRE_ASSIGN_OR_RETURN(const std::string scalar, scalar_text(key));
    out_.append("\"" + scalar + "\"", joint_origin(origin, key.origin()));
    return Status();
  }

  Status write_dict(const Dict& dict) {
    const Origin origin = dict.origin();
    const size_t size = dict.entries().size();
    if (size == 0) {
      out_.append("{}", origin);
      return Status();
    }
    std::vector<size_t> order;
    if (style_.sort_keys) {
      QUIRE_ASSIGN_OR_RETURN(order, order_of(dict));
    }
    out_.append("{", origin);
    ++level_;
    for (size_t i = 0; i < size; ++i) {
      const auto& [key, value] = dict.entries()[style_.sort_keys ? order[i] : i];
      if (i > 0) append_style(style_.item_separator, 1, origin);
      new_line(origin);
      QUIRE_RETURN_IF_ERROR(write_key(key, origin));
      append_style(style_.key_separator, 1, origin);
      QUIRE_RETURN_IF_ERROR(write(value, origin));
    }
    --level_;
    new_line(origin);
    out_.append("}", origin);
    return Status();
  }

  Runtime& runtime_;
  const JsonStyle& style_;
  TextBuilder out_;
  size_t level_ = 0;
};

}  // namespace

Result<Value> write_json(Runtime& runtime, const Value& value, const JsonStyle& style) {
  Writer writer(runtime, style);
  QUIRE_RETURN_IF_ERROR(writer.write(value, Origin::kTemplate));
  return runtime.string(writer.take());
}

}  // namespace quire::jinja
