// Appends JSON to a string, value by value; commas come by themselves. Text that is not UTF-8 gets U+FFFD, numbers that
// JSON has no form for become null. One thread at a time; the string must outlive the writer.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include "json/json_value.h"

namespace quire {

class JsonWriter {
 public:
  explicit JsonWriter(std::string* out) : out_(*out) {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);

  JsonWriter& text(std::string_view value);
  JsonWriter& boolean(bool value) { return raw(value ? "true" : "false"); }
  JsonWriter& null() { return raw("null"); }
  template <std::integral T>
  JsonWriter& number(T value) {
    return raw(std::to_string(value));
  }
  JsonWriter& number(double value);
  JsonWriter& number(float value);  // shortest text that reads back as the same float
  JsonWriter& value(const JsonValue& value);
  JsonWriter& raw(std::string_view json);  // one value that is JSON already

  // key() and the value in one.
  JsonWriter& text(std::string_view name, std::string_view value) { return key(name).text(value); }
  JsonWriter& boolean(std::string_view name, bool value) { return key(name).boolean(value); }
  JsonWriter& null(std::string_view name) { return key(name).null(); }
  template <typename T>
  JsonWriter& number(std::string_view name, T value) {
    return key(name).number(value);
  }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  JsonWriter& real(double value);
  void separate();

  std::string& out_;
  bool needs_comma_ = false;
};

// `text` as a JSON string, quotes included.
void append_json_string(std::string_view text, std::string* out);

}  // namespace quire
