#include "json/json_writer.h"

#include <charconv>
#include <cmath>

#include "unicode/utf8.h"

namespace quire {
namespace {

bool is_plain(char c) { return static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\'; }

void append_escaped(char c, std::string* out) {
  switch (c) {
    case '"':
      out->append("\\\"");
      return;
    case '\\':
      out->append("\\\\");
      return;
    case '\n':
      out->append("\\n");
      return;
    case '\r':
      out->append("\\r");
      return;
    case '\t':
      out->append("\\t");
      return;
    default:
      constexpr char kHex[] = "0123456789abcdef";
      out->append("\\u00");
      out->push_back(kHex[(static_cast<unsigned char>(c) >> 4) & 15]);
      out->push_back(kHex[static_cast<unsigned char>(c) & 15]);
  }
}

template <typename T>
void append_real(T value, std::string* out) {
  char buffer[40];
  const std::to_chars_result end = std::to_chars(buffer, buffer + sizeof buffer, value);
  out->append(buffer, static_cast<size_t>(end.ptr - buffer));
}

}  // namespace

void append_json_string(std::string_view text, std::string* out) {
  if (!is_valid_utf8(text)) return append_json_string(repair_utf8(text), out);
  out->push_back('"');
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (is_plain(text[i])) continue;
    out->append(text.substr(begin, i - begin));
    append_escaped(text[i], out);
    begin = i + 1;
  }
  out->append(text.substr(begin)).push_back('"');
}

void JsonWriter::separate() {
  if (needs_comma_) out_.push_back(',');
  needs_comma_ = true;
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  out_.push_back(bracket);
  needs_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  out_.push_back(bracket);
  needs_comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  append_json_string(name, &out_);
  out_.push_back(':');
  needs_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::text(std::string_view value) {
  separate();
  append_json_string(value, &out_);
  return *this;
}

JsonWriter& JsonWriter::number(double value) {
  if (!std::isfinite(value)) return null();
  separate();
  append_real(value, &out_);
  return *this;
}

// A template prints 2.0 and 2 differently, so a number that was read with a point keeps one.
JsonWriter& JsonWriter::real(double value) {
  const size_t begin = out_.size();
  number(value);
  if (std::string_view(out_).substr(begin).find_first_of(".en") == std::string_view::npos) out_.append(".0");
  return *this;
}

JsonWriter& JsonWriter::number(float value) {
  if (!std::isfinite(value)) return null();
  separate();
  append_real(value, &out_);
  return *this;
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  separate();
  out_.append(json);
  return *this;
}

JsonWriter& JsonWriter::value(const JsonValue& value) {
  if (value.is_null()) return null();
  if (const bool* v = value.as<bool>()) return boolean(*v);
  if (const int64_t* v = value.as<int64_t>()) return number(*v);
  if (const uint64_t* v = value.as<uint64_t>()) return number(*v);
  if (const double* v = value.as<double>()) return real(*v);
  if (const std::string* v = value.as<std::string>()) return text(*v);
  if (const auto* items = value.as<JsonValue::Array>()) {
    begin_array();
    for (const JsonValue& item : *items) this->value(item);
    return end_array();
  }
  begin_object();
  for (const JsonMember& member : *value.as<JsonValue::Object>()) key(member.key).value(member.value);
  return end_object();
}

}  // namespace quire
