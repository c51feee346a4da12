// Takes the fields of a JSON object one by one, with their types and ranges. The first error sticks, and names the
// field; after it every call yields nothing. What nobody took is found by rest(). null counts as absent everywhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/json_value.h"
#include "options/options.h"
#include "server/api_error.h"

namespace quire {

class FieldReader {
 public:
  // `root` must be an object, or the reader starts with an error. `prefix` goes before names: "messages[2].".
  explicit FieldReader(const JsonValue& root, std::string prefix = {});

  const JsonValue* take(std::string_view name);  // null: absent
  std::optional<std::string> text(std::string_view name);
  std::optional<bool> boolean(std::string_view name);
  std::optional<int64_t> integer(std::string_view name, int64_t minimum, int64_t maximum);
  std::optional<double> number(std::string_view name, double minimum, double maximum);
  // A list of token ids in [0, vocab_size).
  std::optional<std::vector<int32_t>> ids(std::string_view name, int32_t vocab_size);
  // Into the member of `options` that the options table gives this key. True: it was there.
  bool option(Options& options, const OptionRow& row);

  void fail(std::string_view name, std::string message, std::string code = {});
  void fail(ApiError error);
  void wrong_type(std::string_view name, std::string_view wanted, const JsonValue& value);
  const std::optional<ApiError>& error() const { return error_; }

  std::vector<std::string> rest() const;  // names of what was not taken, nulls left out
  std::string full_name(std::string_view name) const { return prefix_ + std::string(name); }

 private:
  const JsonValue::Object* members_ = nullptr;
  std::string prefix_;
  std::vector<bool> taken_;
  std::optional<ApiError> error_;
};

// 3, and 3.0 too, which is how some languages write it. Nothing: no whole number of 64 bits.
std::optional<int64_t> integer_of(const JsonValue& value);
// Nothing: not a number.
std::optional<double> number_of(const JsonValue& value);

// The ids of a list, each in [0, vocab_size); nothing when one is not.
std::optional<std::vector<int32_t>> token_ids(const JsonValue::Array& list, int32_t vocab_size);

}  // namespace quire
