#include "cli/json_request.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "json/json_writer.h"

namespace quire {
namespace {

std::string in_quotes(std::string_view key) { return std::string("\"").append(key).append("\""); }

Status wrong_type(std::string_view key, std::string_view wanted) {
  return invalid_argument(in_quotes(key) + " must be " + std::string(wanted));
}

std::string dump(const JsonValue& value) {
  std::string json;
  JsonWriter(&json).value(value);
  return json;
}

Result<int64_t> token_id(const JsonValue& value, std::string_view key) {
  if (const int64_t* number = value.as<int64_t>()) return *number;
  if (const double* real = value.as<double>()) {
    if (const auto number = whole_number(*real)) return *number;
  }
  return wrong_type(key, "a list of token ids");
}

Result<OptionValue> list_value(const JsonValue::Array& list, std::string_view key) {
  std::vector<std::string> texts;
  std::vector<int64_t> numbers;
  for (const JsonValue& entry : list) {
    if (const std::string* text = entry.as<std::string>()) {
      texts.push_back(*text);
    } else {
      QUIRE_ASSIGN_OR_RETURN(numbers.emplace_back(), token_id(entry, key));
    }
  }
  if (!texts.empty() && !numbers.empty()) return wrong_type(key, "a list of one kind of value");
  return texts.empty() ? OptionValue(std::move(numbers)) : OptionValue(std::move(texts));
}

Result<OptionValue> option_value(const JsonValue& value, std::string_view key) {
  if (const bool* v = value.as<bool>()) return OptionValue(*v);
  if (const uint64_t* v = value.as<uint64_t>()) return OptionValue(*v);
  if (const int64_t* v = value.as<int64_t>()) return OptionValue(*v);
  if (const double* v = value.as<double>()) return OptionValue(*v);
  if (const std::string* v = value.as<std::string>()) return OptionValue(*v);
  if (const auto* list = value.as<JsonValue::Array>()) return list_value(*list, key);
  return wrong_type(key, "a number, true, false, a text, or a list of one of them");
}

}  // namespace

Result<JsonRequest> JsonRequest::parse(std::string_view line) {
  QUIRE_ASSIGN_OR_RETURN(JsonValue value, JsonValue::parse(line));
  auto* fields = std::get_if<JsonValue::Object>(&value.value);
  if (fields == nullptr) return invalid_argument("a request is one JSON object a line");
  return JsonRequest(std::move(*fields));
}

std::optional<JsonValue> JsonRequest::take(std::string_view key) {
  const auto found = std::ranges::find(fields_, key, &JsonMember::key);
  if (found == fields_.end()) return std::nullopt;
  JsonValue value = std::move(found->value);
  fields_.erase(found);
  return value;
}

Result<std::optional<std::string>> JsonRequest::take_text(std::string_view key) {
  const std::optional<JsonValue> value = take(key);
  if (!value) return std::optional<std::string>();
  const std::string* text = value->as<std::string>();
  if (text == nullptr) return wrong_type(key, "a text");
  return std::optional(*text);
}

Result<std::optional<std::vector<int32_t>>> JsonRequest::take_ids(std::string_view key) {
  const std::optional<JsonValue> value = take(key);
  if (!value) return std::optional<std::vector<int32_t>>();
  const auto* list = value->as<JsonValue::Array>();
  if (list == nullptr) return wrong_type(key, "a list of token ids");
  std::vector<int32_t> ids;
  ids.reserve(list->size());
  for (const JsonValue& entry : *list) {
    QUIRE_ASSIGN_OR_RETURN(const int64_t id, token_id(entry, key));
    if (id < 0 || id > std::numeric_limits<int32_t>::max()) {
      return out_of_range(in_quotes(key) + " holds " + std::to_string(id) + ", which is no token id");
    }
    ids.push_back(static_cast<int32_t>(id));
  }
  return std::optional(std::move(ids));
}

Result<std::optional<std::string>> JsonRequest::take_array(std::string_view key) {
  const std::optional<JsonValue> value = take(key);
  if (!value || value->is_null()) return std::optional<std::string>();
  if (value->as<JsonValue::Array>() == nullptr) return wrong_type(key, "a list");
  return std::optional(dump(*value));
}

Result<std::optional<std::string>> JsonRequest::take_object(std::string_view key) {
  const std::optional<JsonValue> value = take(key);
  if (!value || value->is_null()) return std::optional<std::string>();
  if (value->as<JsonValue::Object>() == nullptr) return wrong_type(key, "an object");
  return std::optional(dump(*value));
}

Status JsonRequest::take_options(Options& options, Command command) {
  for (const OptionRow& row : option_table()) {
    if (!row.in_request || (row.commands & command) == 0) continue;
    const std::string key = json_key(row);
    const std::optional<JsonValue> json = take(key);
    if (!json) continue;
    // An empty list has no element type; it means the empty list of whatever the option holds.
    const auto* list = json->as<JsonValue::Array>();
    if (list != nullptr && list->empty() && std::holds_alternative<std::vector<std::string> Options::*>(row.member)) {
      QUIRE_RETURN_IF_ERROR(set_option(options, row, std::vector<std::string>{}, in_quotes(key)));
      continue;
    }
    QUIRE_ASSIGN_OR_RETURN(const OptionValue value, option_value(*json, key));
    QUIRE_RETURN_IF_ERROR(set_option(options, row, value, in_quotes(key)));
  }
  return {};
}

Status JsonRequest::finish() const {
  if (fields_.empty()) return {};
  std::string names;
  for (const JsonMember& field : fields_) names.append(names.empty() ? "" : ", ").append(in_quotes(field.key));
  return invalid_argument("the request has " + names + ", which " +
                          (fields_.size() == 1 ? "is no key" : "are no keys") +
                          " of this command (`--help` lists them)");
}

}  // namespace quire
