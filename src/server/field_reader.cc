#include "server/field_reader.h"

#include <cmath>
#include <utility>

namespace quire {
namespace {

std::string number_text(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

// 3, and 3.0 too, which is how some languages write it.
std::optional<int64_t> integer_of(const JsonValue& value) {
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (const int64_t* v = value.as<int64_t>()) return *v;
  const double* v = value.as<double>();
  if (v == nullptr || !(std::fabs(*v) <= kExact) || *v != std::trunc(*v)) return std::nullopt;
  return static_cast<int64_t>(*v);
}

// A list in JSON as the options table takes lists: of one type.
std::optional<OptionValue> list_value(const JsonValue::Array& list) {
  std::vector<std::string> texts;
  std::vector<int64_t> numbers;
  for (const JsonValue& entry : list) {
    if (const auto* text = entry.as<std::string>()) {
      texts.push_back(*text);
    } else if (const auto number = integer_of(entry)) {
      numbers.push_back(*number);
    } else {
      return std::nullopt;
    }
  }
  if (!texts.empty() && !numbers.empty()) return std::nullopt;
  return texts.empty() ? OptionValue(std::move(numbers)) : OptionValue(std::move(texts));
}

std::optional<OptionValue> option_value(const JsonValue& value) {
  if (const bool* v = value.as<bool>()) return OptionValue(*v);
  if (const int64_t* v = value.as<int64_t>()) return OptionValue(*v);
  if (const uint64_t* v = value.as<uint64_t>()) return OptionValue(*v);
  if (const double* v = value.as<double>()) return OptionValue(*v);
  if (const std::string* v = value.as<std::string>()) return OptionValue(*v);
  if (const auto* list = value.as<JsonValue::Array>()) return list_value(*list);
  return std::nullopt;
}

}  // namespace

std::optional<double> number_of(const JsonValue& value) {
  if (const double* v = value.as<double>()) return *v;
  if (const int64_t* v = value.as<int64_t>()) return static_cast<double>(*v);
  if (const uint64_t* v = value.as<uint64_t>()) return static_cast<double>(*v);
  return std::nullopt;
}

FieldReader::FieldReader(const JsonValue& root, std::string prefix)
    : members_(root.as<JsonValue::Object>()), prefix_(std::move(prefix)) {
  if (members_ != nullptr) {
    taken_.resize(members_->size());
    return;
  }
  std::string name = prefix_;
  if (name.ends_with('.')) name.pop_back();
  error_ = ApiError{.message = (name.empty() ? std::string("the body") : "\"" + name + "\"") +
                               " must be a JSON object, not " + std::string(root.type_name()),
                    .param = name};
}

const JsonValue* FieldReader::take(std::string_view name) {
  if (error_ || members_ == nullptr) return nullptr;
  for (size_t i = 0; i < members_->size(); ++i) {
    if ((*members_)[i].key != name) continue;
    taken_[i] = true;
    const JsonValue& value = (*members_)[i].value;
    return value.is_null() ? nullptr : &value;
  }
  return nullptr;
}

void FieldReader::fail(std::string_view name, std::string message, std::string code) {
  fail({.message = "\"" + full_name(name) + "\" " + std::move(message),
        .param = full_name(name),
        .code = std::move(code)});
}

void FieldReader::fail(ApiError error) {
  if (!error_) error_ = std::move(error);
}

void FieldReader::wrong_type(std::string_view name, std::string_view wanted, const JsonValue& value) {
  fail(name, "must be " + std::string(wanted) + ", not " + std::string(value.type_name()));
}

std::optional<std::string> FieldReader::text(std::string_view name) {
  const JsonValue* value = take(name);
  if (value == nullptr) return std::nullopt;
  if (const auto* text = value->as<std::string>()) return *text;
  wrong_type(name, "a string", *value);
  return std::nullopt;
}

std::optional<bool> FieldReader::boolean(std::string_view name) {
  const JsonValue* value = take(name);
  if (value == nullptr) return std::nullopt;
  if (const bool* flag = value->as<bool>()) return *flag;
  wrong_type(name, "true or false", *value);
  return std::nullopt;
}

std::optional<int64_t> FieldReader::integer(std::string_view name, int64_t minimum, int64_t maximum) {
  const JsonValue* value = take(name);
  if (value == nullptr) return std::nullopt;
  const std::optional<int64_t> number = integer_of(*value);
  if (number && *number >= minimum && *number <= maximum) return *number;
  const std::optional<double> real = number_of(*value);
  if (!real) {
    wrong_type(name, "an integer", *value);
    return std::nullopt;
  }
  if (!number && *real != std::trunc(*real)) {
    fail(name, "must be a whole number, not " + number_text(*real));
    return std::nullopt;
  }
  const std::string shown = number ? std::to_string(*number) : number_text(*real);
  fail(name, "must be " + std::to_string(minimum) + " to " + std::to_string(maximum) + ", not " + shown);
  return std::nullopt;
}

std::optional<double> FieldReader::number(std::string_view name, double minimum, double maximum) {
  const JsonValue* value = take(name);
  if (value == nullptr) return std::nullopt;
  const std::optional<double> number = number_of(*value);
  if (!number) {
    wrong_type(name, "a number", *value);
  } else if (*number >= minimum && *number <= maximum) {
    return number;
  } else {
    fail(name, "must be " + number_text(minimum) + " to " + number_text(maximum) + ", not " + number_text(*number));
  }
  return std::nullopt;
}

std::optional<std::vector<int32_t>> token_ids(const JsonValue::Array& list, int32_t vocab_size) {
  std::vector<int32_t> ids;
  ids.reserve(list.size());
  for (const JsonValue& entry : list) {
    const int64_t* id = entry.as<int64_t>();
    if (id == nullptr || *id < 0 || *id >= vocab_size) return std::nullopt;
    ids.push_back(static_cast<int32_t>(*id));
  }
  return ids;
}

std::optional<std::vector<int32_t>> FieldReader::ids(std::string_view name, int32_t vocab_size) {
  const JsonValue* value = take(name);
  if (value == nullptr) return std::nullopt;
  if (const auto* list = value->as<JsonValue::Array>()) {
    if (auto result = token_ids(*list, vocab_size)) return result;
  }
  fail(name, "must be a list of token ids, each 0 to " + std::to_string(vocab_size - 1));
  return std::nullopt;
}

bool FieldReader::option(Options& options, const OptionRow& row) {
  const std::string name = json_key(row);
  const JsonValue* value = take(name);
  if (value == nullptr) return false;
  const auto* list = value->as<JsonValue::Array>();
  std::optional<OptionValue> converted = option_value(*value);
  // An empty list has no element type; it means the empty list of whatever the option holds.
  if (list != nullptr && list->empty() && std::holds_alternative<std::vector<std::string> Options::*>(row.member)) {
    converted = std::vector<std::string>();
  }
  if (!converted) {
    fail(name, "has a value of the wrong type, " + std::string(value->type_name()));
    return false;
  }
  const Status status = set_option(options, row, *converted, "\"" + full_name(name) + "\"");
  if (!status.ok()) fail({.message = status.message(), .param = full_name(name)});
  return status.ok();
}

std::vector<std::string> FieldReader::rest() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < taken_.size(); ++i) {
    if (!taken_[i] && !(*members_)[i].value.is_null()) names.push_back(full_name((*members_)[i].key));
  }
  return names;
}

}  // namespace quire
