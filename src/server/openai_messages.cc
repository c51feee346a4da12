#include <algorithm>
#include <array>

#include "json/json_writer.h"
#include "server/field_reader.h"
#include "server/openai_request.h"

namespace quire {
namespace {

constexpr std::array<std::string_view, 6> kRoles = {"system", "developer", "user", "assistant", "tool", "function"};

// What clients send back of earlier answers and templates may read.
constexpr std::array<std::string_view, 4> kPassedOn = {"name", "tool_calls", "tool_call_id", "reasoning_content"};
// Keys that say nothing to a model of text: what services add to their answers, and hints for caches. Named to the client
// in X-Quire-Ignored. docs/api.md lists them.
constexpr std::array<std::string_view, 10> kHarmless = {
    "annotations", "cache_control", "created", "date", "id", "metadata", "provider_specific_fields",
    "refusal",     "timestamp",     "weight"};
// Keys of which an empty value says nothing; any other is a thing that quire cannot give the model.
constexpr std::array<std::string_view, 3> kEmptyOnly = {"audio", "function_call", "images"};

bool is_empty(const JsonValue& value) {
  const auto* list = value.as<JsonValue::Array>();
  const auto* object = value.as<JsonValue::Object>();
  return (list != nullptr && list->empty()) || (object != nullptr && object->empty());
}

void add_once(const std::string& name, std::vector<std::string>* names) {
  if (std::find(names->begin(), names->end(), name) == names->end()) names->push_back(name);
}

// The texts of content parts, all of which must be text.
std::vector<std::string_view> part_texts(const JsonValue::Array& parts, FieldReader& message) {
  std::vector<std::string_view> texts;
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string where = "content[" + std::to_string(i) + "]";
    const JsonValue* type = parts[i].find("type");
    const std::string* type_name = type == nullptr ? nullptr : type->as<std::string>();
    if (type_name == nullptr) {
      message.fail(where, "must be an object with a \"type\"");
      return {};
    }
    if (*type_name != "text" && *type_name != "refusal") {
      message.fail(where, "is of type \"" + type_name->substr(0, 40) + "\"; this model reads text only", "unsupported");
      return {};
    }
    const JsonValue* text = parts[i].find(*type_name);
    const std::string* words = text == nullptr ? nullptr : text->as<std::string>();
    if (words == nullptr) {
      message.fail(where + "." + *type_name, "must be a string");
      return {};
    }
    texts.push_back(*words);
  }
  return texts;
}

// One a line, as other servers of this API join them for templates that know no parts.
std::string joined(const std::vector<std::string_view>& texts) {
  std::string text;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) text += '\n';
    text += texts[i];
  }
  return text;
}

void write_parts(const std::vector<std::string_view>& texts, JsonWriter& out) {
  out.key("content").begin_array();
  for (const std::string_view text : texts) out.begin_object().text("type", "text").text("text", text).end_object();
  out.end_array();
}

std::string take_role(FieldReader& message) {
  const std::optional<std::string> role = message.text("role");
  if (!role) {
    message.fail("role", "is missing");
    return {};
  }
  if (std::find(kRoles.begin(), kRoles.end(), *role) == kRoles.end()) {
    message.fail("role",
                 "is \"" + role->substr(0, 40) + "\"; it takes system, developer, user, assistant, tool or function");
  }
  return *role == "developer" ? "system" : *role;
}

void write_message(FieldReader& message, JsonWriter& out, const MessagesInput& input) {
  const std::string role = take_role(message);
  out.begin_object().text("role", role);
  const JsonValue* content = message.take("content");
  const JsonValue* tool_calls = message.take("tool_calls");
  if (content == nullptr) {
    if (role != "assistant" || tool_calls == nullptr) message.fail("content", "is missing");
    out.text("content", "");
  } else if (const auto* text = content->as<std::string>()) {
    out.text("content", *text);
  } else if (const auto* parts = content->as<JsonValue::Array>()) {
    const std::vector<std::string_view> texts = part_texts(*parts, message);
    input.content_parts ? write_parts(texts, out) : void(out.text("content", joined(texts)));
  } else {
    message.wrong_type("content", "a string or a list of parts", *content);
  }
  for (const std::string_view name : kPassedOn) {
    const JsonValue* value = name == "tool_calls" ? tool_calls : message.take(name);
    if (value != nullptr) out.key(name).value(*value);
  }
  for (const std::string_view name : kHarmless) {
    const JsonValue* value = message.take(name);
    if (value != nullptr && !is_empty(*value)) add_once("messages." + std::string(name), input.ignored);
  }
  for (const std::string_view name : kEmptyOnly) {
    const JsonValue* value = message.take(name);
    if (value != nullptr && !is_empty(*value)) {
      message.fail(name, "is not supported: this model reads text only", "unsupported");
    }
  }
  out.end_object();
  if (const std::vector<std::string> rest = message.rest(); !rest.empty() && !message.error()) {
    message.fail({.message = "\"" + rest.front() + "\" is no field of a message that quire knows",
                  .param = rest.front(),
                  .code = "unknown_field"});
  }
}

}  // namespace

std::variant<std::string, ApiError> normalize_messages(const MessagesInput& input) {
  const JsonValue& messages = input.messages;
  const std::string name(input.where);
  const auto* list = messages.as<JsonValue::Array>();
  if (list == nullptr) {
    return ApiError{.message = "\"" + name + "\" must be a list of messages, not " + std::string(messages.type_name()),
                    .param = name};
  }
  if (list->empty()) return ApiError{.message = "\"" + name + "\" holds no message", .param = name};
  std::string json;
  JsonWriter writer(&json);
  writer.begin_array();
  for (size_t i = 0; i < list->size(); ++i) {
    FieldReader message((*list)[i], name + "[" + std::to_string(i) + "].");
    if (!message.error()) write_message(message, writer, input);
    if (message.error()) return *message.error();
  }
  writer.end_array();
  return json;
}

}  // namespace quire
