// One JSON request of --jsonl, read strictly: each command takes the fields it knows, with their types; what nobody
// took is an error that names it. Values of single requests; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "json/json_value.h"
#include "options/options.h"

namespace quire {

class JsonRequest {
 public:
  // `line` holds one JSON object, within the limits of JsonValue.
  static Result<JsonRequest> parse(std::string_view line);

  // Each leaves the field taken. Absent is no error; a wrong type is, and names the field.
  Result<std::optional<std::string>> take_text(std::string_view key);
  Result<std::optional<std::vector<int32_t>>> take_ids(std::string_view key);
  // The field's JSON text, key order kept; null counts as absent.
  Result<std::optional<std::string>> take_array(std::string_view key);
  Result<std::optional<std::string>> take_object(std::string_view key);
  // Every option that `command` allows in a request.
  Status take_options(Options& options, Command command);

  // Fails on fields that were not taken.
  Status finish() const;

 private:
  explicit JsonRequest(JsonValue::Object fields) : fields_(std::move(fields)) {}
  std::optional<JsonValue> take(std::string_view key);  // absent: no such field

  JsonValue::Object fields_;  // that nobody took yet, in their order
};

}  // namespace quire
