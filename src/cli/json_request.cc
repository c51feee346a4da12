#include "cli/json_request.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

// Writing and destroying nested values recurses, so depth is checked before anything is built.
constexpr int kMaxDepth = 200;

bool nests_too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxDepth) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

std::string in_quotes(std::string_view key) { return std::string("\"").append(key).append("\""); }

Status wrong_type(std::string_view key, std::string_view wanted) {
  return invalid_argument(in_quotes(key) + " must be " + std::string(wanted));
}

std::string dump(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

Result<int64_t> whole_number(const Json& value, std::string_view key) {
  constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<uint64_t>() > kMax)) {
    return wrong_type(key, "a list of token ids");
  }
  return value.get<int64_t>();
}

Result<OptionValue> option_value(const Json& value, std::string_view key) {
  if (value.is_boolean()) return OptionValue(value.get<bool>());
  if (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()}) {
    return OptionValue(value.get<uint64_t>());
  }
  if (value.is_number_integer()) return OptionValue(value.get<int64_t>());
  if (value.is_number()) return OptionValue(value.get<double>());
  if (value.is_string()) return OptionValue(value.get<std::string>());
  if (!value.is_array()) return wrong_type(key, "a number, true, false, a text, or a list of one of them");
  std::vector<std::string> texts;
  std::vector<int64_t> numbers;
  for (const Json& entry : value) {
    if (entry.is_string()) {
      texts.push_back(entry.get<std::string>());
    } else {
      QUIRE_ASSIGN_OR_RETURN(numbers.emplace_back(), whole_number(entry, key));
    }
  }
  if (!texts.empty() && !numbers.empty()) return wrong_type(key, "a list of one kind of value");
  return texts.empty() ? OptionValue(std::move(numbers)) : OptionValue(std::move(texts));
}

}  // namespace

struct JsonRequest::Fields {
  Json object;

  std::optional<Json> take(std::string_view key) {
    const auto found = object.find(std::string(key));
    if (found == object.end()) return std::nullopt;
    Json value = std::move(*found);
    object.erase(found);
    return value;
  }
};

JsonRequest::JsonRequest(std::unique_ptr<Fields> fields) : fields_(std::move(fields)) {}
JsonRequest::JsonRequest(JsonRequest&&) noexcept = default;
JsonRequest::~JsonRequest() = default;

Result<JsonRequest> JsonRequest::parse(std::string_view line) {
  if (nests_too_deep(line)) {
    return invalid_argument("the request nests more than " + std::to_string(kMaxDepth) + " levels deep");
  }
  auto fields = std::make_unique<Fields>();
  try {
    fields->object = Json::parse(line);
  } catch (const Json::exception& error) {
    std::string what = error.what();
    if (const size_t tag = what.find("] "); tag != std::string::npos) what.erase(0, tag + 2);
    return invalid_argument("not JSON: " + what);
  }
  if (!fields->object.is_object()) return invalid_argument("a request is one JSON object a line");
  return JsonRequest(std::move(fields));
}

Result<std::optional<std::string>> JsonRequest::take_text(std::string_view key) {
  const std::optional<Json> value = fields_->take(key);
  if (!value) return std::optional<std::string>();
  if (!value->is_string()) return wrong_type(key, "a text");
  return std::optional(value->get<std::string>());
}

Result<std::optional<std::vector<int32_t>>> JsonRequest::take_ids(std::string_view key) {
  const std::optional<Json> value = fields_->take(key);
  if (!value) return std::optional<std::vector<int32_t>>();
  if (!value->is_array()) return wrong_type(key, "a list of token ids");
  std::vector<int32_t> ids;
  ids.reserve(value->size());
  for (const Json& entry : *value) {
    QUIRE_ASSIGN_OR_RETURN(const int64_t id, whole_number(entry, key));
    if (id < 0 || id > std::numeric_limits<int32_t>::max()) {
      return out_of_range(in_quotes(key) + " holds " + std::to_string(id) + ", which is no token id");
    }
    ids.push_back(static_cast<int32_t>(id));
  }
  return std::optional(std::move(ids));
}

Result<std::optional<std::string>> JsonRequest::take_array(std::string_view key) {
  const std::optional<Json> value = fields_->take(key);
  if (!value || value->is_null()) return std::optional<std::string>();
  if (!value->is_array()) return wrong_type(key, "a list");
  return std::optional(dump(*value));
}

Result<std::optional<std::string>> JsonRequest::take_object(std::string_view key) {
  const std::optional<Json> value = fields_->take(key);
  if (!value || value->is_null()) return std::optional<std::string>();
  if (!value->is_object()) return wrong_type(key, "an object");
  return std::optional(dump(*value));
}

Status JsonRequest::take_options(Options& options, Command command) {
  for (const OptionRow& row : option_table()) {
    if (!row.in_request || (row.commands & command) == 0) continue;
    const std::string key = json_key(row);
    const std::optional<Json> json = fields_->take(key);
    if (!json) continue;
    // An empty list has no element type; it means the empty list of whatever the option holds.
    if (json->is_array() && json->empty() && std::holds_alternative<std::vector<std::string> Options::*>(row.member)) {
      QUIRE_RETURN_IF_ERROR(set_option(options, row, std::vector<std::string>{}, in_quotes(key)));
      continue;
    }
    QUIRE_ASSIGN_OR_RETURN(const OptionValue value, option_value(*json, key));
    QUIRE_RETURN_IF_ERROR(set_option(options, row, value, in_quotes(key)));
  }
  return {};
}

Status JsonRequest::finish() const {
  if (fields_->object.empty()) return {};
  std::string names;
  for (const auto& [key, value] : fields_->object.items())
    names.append(names.empty() ? "" : ", ").append(in_quotes(key));
  const bool one = fields_->object.size() == 1;
  return invalid_argument("the request has " + names + ", which " + (one ? "is no key" : "are no keys") +
                          " of this command (`--help` lists them)");
}

}  // namespace quire
