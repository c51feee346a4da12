#include "cli/json_object.h"

#include <nlohmann/json.hpp>

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

struct JsonObject::Value {
  Json object = Json::object();

  template <typename T>
  void add(std::string_view key, T&& value) {
    object[std::string(key)] = std::forward<T>(value);
  }
};

JsonObject::JsonObject() : value_(std::make_unique<Value>()) {}
JsonObject::JsonObject(JsonObject&&) noexcept = default;
JsonObject& JsonObject::operator=(JsonObject&&) noexcept = default;
JsonObject::~JsonObject() = default;

JsonObject& JsonObject::text(std::string_view key, std::string_view value) {
  value_->add(key, value);
  return *this;
}

JsonObject& JsonObject::number(std::string_view key, int64_t value) {
  value_->add(key, value);
  return *this;
}

JsonObject& JsonObject::unsigned_number(std::string_view key, uint64_t value) {
  value_->add(key, value);
  return *this;
}

JsonObject& JsonObject::real(std::string_view key, double value) {
  value_->add(key, value);
  return *this;
}

JsonObject& JsonObject::boolean(std::string_view key, bool value) {
  value_->add(key, value);
  return *this;
}

JsonObject& JsonObject::null(std::string_view key) {
  value_->add(key, nullptr);
  return *this;
}

JsonObject& JsonObject::ids(std::string_view key, std::span<const int32_t> values) {
  value_->add(key, std::vector<int32_t>(values.begin(), values.end()));
  return *this;
}

JsonObject& JsonObject::reals(std::string_view key, std::span<const float> values) {
  value_->add(key, std::vector<double>(values.begin(), values.end()));
  return *this;
}

JsonObject& JsonObject::pairs(std::string_view key, std::span<const std::pair<int32_t, float>> values) {
  Json array = Json::array();
  for (const auto& [id, number] : values) array.push_back(Json::array({id, static_cast<double>(number)}));
  value_->add(key, std::move(array));
  return *this;
}

JsonObject& JsonObject::texts(std::string_view key, std::span<const std::string> values) {
  value_->add(key, std::vector<std::string>(values.begin(), values.end()));
  return *this;
}

JsonObject& JsonObject::object(std::string_view key, JsonObject value) {
  value_->add(key, std::move(value.value_->object));
  return *this;
}

JsonObject& JsonObject::json(std::string_view key, std::string_view text) {
  value_->add(key, Json::parse(text, nullptr, false));
  return *this;
}

JsonObject& JsonObject::objects(std::string_view key, std::vector<JsonObject> values) {
  Json array = Json::array();
  for (JsonObject& value : values) array.push_back(std::move(value.value_->object));
  value_->add(key, std::move(array));
  return *this;
}

std::string JsonObject::line() const { return dump(value_->object, -1); }
std::string JsonObject::pretty() const { return dump(value_->object, 2); }

std::string messages_json(std::span<const std::pair<std::string, std::string>> messages) {
  Json array = Json::array();
  for (const auto& [role, content] : messages) array.push_back({{"role", role}, {"content", content}});
  return dump(array, -1);
}

std::string merge_json(const JsonObject& defaults, std::string_view object_json) {
  Json merged = Json::parse(defaults.line());
  const Json own = Json::parse(object_json, nullptr, false);
  for (const auto& [key, value] : own.items()) merged[key] = value;
  return dump(merged, -1);
}

}  // namespace quire
