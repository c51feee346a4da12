#include "server/field_reader.h"

#include <charconv>
#include <cmath>
#include <utility>

namespace quire {
namespace {

// The shortest that reads back as the same: a value that is refused must not look like one that is taken.
std::string number_text(double value) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
}

// What is wrong with a list that list_value() does not take.
std::string list_fault(const JsonValue::Array& list) {
  for (const JsonValue& entry : list) {
    if (entry.as<std::string>() != nullptr || integer_of(entry)) continue;
    const std::optional<double> number = number_of(entry);
    return "holds " + (number ? number_text(*number) : std::string(entry.type_name()));
  }
  return "holds texts and numbers";
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

std::optional<int64_t> integer_of(const JsonValue& value) {
  if (const int64_t* v = value.as<int64_t>()) return *v;
  const double* v = value.as<double>();
  return v == nullptr ? std::nullopt : whole_number(*v);
}

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
  const uint64_t* large = value->as<uint64_t>();
  const std::string shown = number             ? std::to_string(*number)
                            : large != nullptr ? std::to_string(*large)
                                               : number_text(*real);
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
    const std::optional<int64_t> id = integer_of(entry);
    if (!id || *id < 0 || *id >= vocab_size) return std::nullopt;
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
    fail(name, (list != nullptr ? list_fault(*list) : "is " + std::string(value->type_name())) + "; it takes " +
                   accepted_text(row));
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
