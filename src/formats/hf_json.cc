#include "formats/hf_json.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/messages.h"
#include "json/json_check.h"

namespace quire {

using Json = nlohmann::json;

struct HfJson::Object {
  Json json;

  // Null when absent or null.
  const Json* find(const std::string& key) const {
    const auto found = json.find(key);
    return found != json.end() && !found->is_null() ? &*found : nullptr;
  }
};

HfJson::HfJson(Object object, std::string where)
    : object_(std::make_shared<const Object>(std::move(object))), where_(std::move(where)) {}

Result<HfJson> HfJson::parse(const std::string& text, const std::string& where) {
  QUIRE_RETURN_IF_ERROR(check_json_object(text, where));
  Json object = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return corrupt(where + ": is not a JSON object");
  return HfJson(Object{std::move(object)}, where);
}

bool HfJson::has(const std::string& key) const { return object_->find(key) != nullptr; }

bool HfJson::names(const std::string& key) const { return object_->json.contains(key); }

std::vector<std::string> HfJson::keys() const {
  std::vector<std::string> names;
  for (const auto& [key, value] : object_->json.items()) {
    if (!value.is_null()) names.push_back(key);
  }
  return names;
}

std::string HfJson::value_text(const std::string& key) const {
  constexpr size_t kShown = 60;
  const Json* value = object_->find(key);
  if (value == nullptr) return "null";
  std::string text = value->dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  if (text.size() > kShown) text.replace(kShown - 3, std::string::npos, "...");
  return text;
}

bool HfJson::same_value(const HfJson& other, const std::string& key) const {
  const Json* mine = object_->find(key);
  const Json* theirs = other.object_->find(key);
  if (mine == nullptr || theirs == nullptr) return mine == theirs;
  return *mine == *theirs;
}

HfJson HfJson::updated(const HfJson& over) const {
  Json json = object_->json;
  json.update(over.object_->json);
  return HfJson(Object{std::move(json)}, where_);
}

Status HfJson::error(const std::string& key, const std::string& what) const {
  return corrupt(where_ + ": " + quote(key) + " " + what);
}

Result<std::optional<int64_t>> HfJson::find_int(const std::string& key) const {
  const Json* value = object_->find(key);
  if (value == nullptr) return std::optional<int64_t>();
  const bool fits = value->is_number_unsigned() ? value->get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX)
                                                : value->is_number_integer();
  if (!fits) return error(key, "is not an integer");
  return std::optional<int64_t>(value->get<int64_t>());
}

Result<std::optional<double>> HfJson::find_float(const std::string& key) const {
  const Json* value = object_->find(key);
  if (value == nullptr) return std::optional<double>();
  if (!value->is_number()) return error(key, "is not a number");
  return std::optional<double>(value->get<double>());
}

Result<std::optional<bool>> HfJson::find_bool(const std::string& key) const {
  const Json* value = object_->find(key);
  if (value == nullptr) return std::optional<bool>();
  if (!value->is_boolean()) return error(key, "is not true or false");
  return std::optional<bool>(value->get<bool>());
}

Result<std::optional<std::string>> HfJson::find_string(const std::string& key) const {
  const Json* value = object_->find(key);
  if (value == nullptr) return std::optional<std::string>();
  if (!value->is_string()) return error(key, "is not a string");
  return std::optional<std::string>(value->get<std::string>());
}

Result<std::optional<HfJson>> HfJson::find_object(const std::string& key) const {
  const Json* value = object_->find(key);
  if (value == nullptr) return std::optional<HfJson>();
  if (!value->is_object()) return error(key, "is not an object");
  return std::optional<HfJson>(HfJson(Object{*value}, where_ + ": " + quote(key)));
}

Result<std::vector<std::pair<std::string, HfJson>>> HfJson::find_objects(const std::string& key) const {
  std::vector<std::pair<std::string, HfJson>> objects;
  const Json* value = object_->find(key);
  if (value == nullptr) return objects;
  if (!value->is_object()) return error(key, "is not an object");
  for (const auto& [name, element] : value->items()) {
    if (!element.is_object()) return error(key, "holds " + quote(name) + ", which is not an object");
    objects.emplace_back(name, HfJson(Object{element}, where_ + ": " + quote(key) + ": " + quote(name)));
  }
  return objects;
}

Result<std::vector<float>> HfJson::find_floats(const std::string& key) const {
  std::vector<float> numbers;
  const Json* value = object_->find(key);
  if (value == nullptr) return numbers;
  if (!value->is_array()) return error(key, "is not an array");
  for (const Json& element : *value) {
    if (!element.is_number()) return error(key, "holds something other than numbers");
    numbers.push_back(element.get<float>());
  }
  return numbers;
}

Result<std::vector<std::string>> HfJson::find_strings(const std::string& key) const {
  std::vector<std::string> strings;
  const Json* value = object_->find(key);
  if (value == nullptr) return strings;
  if (!value->is_array()) return error(key, "is not an array");
  for (const Json& element : *value) {
    if (!element.is_string()) return error(key, "holds something other than strings");
    strings.push_back(element.get<std::string>());
  }
  return strings;
}

Result<std::vector<int64_t>> HfJson::find_int_or_ints(const std::string& key) const {
  std::vector<int64_t> numbers;
  const Json* value = object_->find(key);
  if (value == nullptr) return numbers;
  if (!value->is_array()) {
    QUIRE_ASSIGN_OR_RETURN(const auto number, find_int(key));
    return std::vector<int64_t>{*number};
  }
  for (const Json& element : *value) {
    if (!element.is_number_integer() || element.get<double>() > 9e18)
      return error(key, "holds something other than integers");
    numbers.push_back(element.get<int64_t>());
  }
  return numbers;
}

}  // namespace quire
