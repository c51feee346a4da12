// A JSON document of a request (the body of one over HTTP, a line of --jsonl) or of a checkpoint, read strictly.
//
// Refused: what is not RFC 8259 (NaN, comments, trailing text, bad UTF-8), numbers beyond double, an object that names a
// key twice, nesting beyond kMaxDepth, more than kMaxValues values. So memory stays in proportion to the text, and
// destroying a document cannot exhaust the stack. Plain values; one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"

namespace quire {

struct JsonMember;

struct JsonValue {
  using Array = std::vector<JsonValue>;
  using Object = std::vector<JsonMember>;  // in source order, keys distinct

  static constexpr int kMaxDepth = 64;
  static constexpr size_t kMaxValues = size_t{1} << 20;

  // int64_t holds every integer that fits it, uint64_t those above, double all other numbers.
  std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string, Array, Object> value;

  // kInvalidArgument, kOutOfRange: the message says what and where.
  static Result<JsonValue> parse(std::string_view text);

  template <typename T>
  const T* as() const {
    return std::get_if<T>(&value);
  }
  bool is_null() const { return std::holds_alternative<std::monostate>(value); }
  std::string_view type_name() const;                 // "a string", as messages put it
  const JsonValue* find(std::string_view key) const;  // null: no object, or no such key
};

struct JsonMember {
  std::string key;
  JsonValue value;
};

}  // namespace quire
