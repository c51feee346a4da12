// Builds the JSON that quire prints. Keys stay in the order they were added; text that is not UTF-8 gets U+FFFD, and
// numbers that JSON has no form for (NaN, infinity) become null. Plain value; one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace quire {

class JsonObject {
 public:
  JsonObject();
  JsonObject(JsonObject&&) noexcept;
  JsonObject& operator=(JsonObject&&) noexcept;
  ~JsonObject();

  JsonObject& text(std::string_view key, std::string_view value);
  JsonObject& number(std::string_view key, int64_t value);
  JsonObject& unsigned_number(std::string_view key, uint64_t value);
  JsonObject& real(std::string_view key, double value);
  JsonObject& boolean(std::string_view key, bool value);
  JsonObject& null(std::string_view key);
  JsonObject& ids(std::string_view key, std::span<const int32_t> values);
  JsonObject& reals(std::string_view key, std::span<const float> values);
  JsonObject& pairs(std::string_view key, std::span<const std::pair<int32_t, float>> values);
  JsonObject& texts(std::string_view key, std::span<const std::string> values);
  JsonObject& object(std::string_view key, JsonObject value);
  JsonObject& json(std::string_view key, std::string_view text);  // valid JSON
  JsonObject& objects(std::string_view key, std::vector<JsonObject> values);

  std::string line() const;    // on one line, without its end
  std::string pretty() const;  // indented by two

 private:
  struct Value;
  std::unique_ptr<Value> value_;
};

// A JSON array of chat messages from (role, content) pairs.
std::string messages_json(std::span<const std::pair<std::string, std::string>> messages);

// `object_json` with the fields of `defaults` that it lacks put before its own.
std::string merge_json(const JsonObject& defaults, std::string_view object_json);

}  // namespace quire
