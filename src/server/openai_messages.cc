#include <algorithm>
#include <array>
#include <span>

#include "json/json_writer.h"
#include "server/field_reader.h"
#include "server/openai_request.h"

namespace quire {
namespace {

constexpr std::array<std::string_view, 6> kRoles = {"system", "developer", "user", "assistant", "tool", "function"};

// What clients send back of earlier answers and templates may read.
constexpr std::array<std::string_view, 4> kPassedOn = {"name", "tool_calls", "tool_call_id", "reasoning_content"};

bool is_empty(const JsonValue& value) {
  const auto* list = value.as<JsonValue::Array>();
  const auto* object = value.as<JsonValue::Object>();
  return (list != nullptr && list->empty()) || (object != nullptr && object->empty());
}

bool always(const JsonValue&) { return true; }

// Keys that say nothing to a model of text: what services add to their answers and clients send back, and hints for caches.
// Those with a value that says something are named to the client in X-Quire-Ignored. Any other key is an error, and so is a
// value that is a thing which quire cannot give the model. docs/api.md has this list.
struct HarmlessKey {
  std::string_view name;
  bool (*is_harmless)(const JsonValue&);
};

constexpr HarmlessKey kOfMessages[] = {
    {"annotations", always},
    {"audio", is_empty},
    {"cache_control", always},
    {"created", always},
    {"date", always},
    {"function_call", is_empty},
    {"id", always},
    {"images", is_empty},
    {"metadata", always},
    {"provider_specific_fields", always},
    {"refusal", always},
    {"timestamp", always},
    {"weight", always},
};
constexpr HarmlessKey kOfParts[] = {{"annotations", always}, {"cache_control", always}, {"id", always}};

void add_once(const std::string& name, std::vector<std::string>* names) {
  if (std::find(names->begin(), names->end(), name) == names->end()) names->push_back(name);
}

// What is left of an object once its keys are read: harmless, or an error. `of`: how the object is called in `ignored`.
void take_rest(FieldReader& fields, std::span<const HarmlessKey> harmless, std::string_view of,
               std::vector<std::string>* ignored) {
  for (const HarmlessKey& key : harmless) {
    const JsonValue* value = fields.take(key.name);
    if (value == nullptr || is_empty(*value)) continue;
    if (!key.is_harmless(*value)) {
      return fields.fail(key.name, "is not supported: this model reads text only", "unsupported");
    }
    add_once(std::string(of) + "." + std::string(key.name), ignored);
  }
  if (const std::vector<std::string> rest = fields.rest(); !rest.empty()) {
    fields.fail({.message = "\"" + rest.front() + "\" is no field that quire knows: leave it out",
                 .param = rest.front(),
                 .code = "unknown_field"});
  }
}

// The text of a content part; nothing, and the error, where it is none.
std::string_view part_text(FieldReader& part, std::vector<std::string>* ignored) {
  const JsonValue* type = part.take("type");
  const std::string* name = type == nullptr ? nullptr : type->as<std::string>();
  if (name == nullptr) {
    part.fail("type", "is missing: a part is {\"type\": \"text\", \"text\": TEXT}");
    return {};
  }
  if (*name != "text" && *name != "refusal") {
    part.fail("type", "is \"" + name->substr(0, 40) + "\"; this model reads text only", "unsupported");
    return {};
  }
  const JsonValue* text = part.take(*name);
  const std::string* words = text == nullptr ? nullptr : text->as<std::string>();
  if (words == nullptr) {
    part.fail(*name, "must be a string");
    return {};
  }
  take_rest(part, kOfParts, "messages.content", ignored);
  return *words;
}

// The texts of content parts, all of which must be text.
std::vector<std::string_view> part_texts(const JsonValue::Array& parts, FieldReader& message,
                                         std::vector<std::string>* ignored) {
  std::vector<std::string_view> texts;
  for (size_t i = 0; i < parts.size(); ++i) {
    FieldReader part(parts[i], message.full_name("content[" + std::to_string(i) + "]."));
    if (!part.error()) texts.push_back(part_text(part, ignored));
    if (part.error()) {
      message.fail(*part.error());
      return {};
    }
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

// `tag` goes behind the last.
void write_parts(const std::vector<std::string_view>& texts, std::string_view tag, JsonWriter& out) {
  out.key("content").begin_array();
  for (const std::string_view& text : texts) {
    const bool last = &text == &texts.back();
    out.begin_object().text("type", "text").text("text", std::string(text).append(last ? tag : "")).end_object();
  }
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

// `begun`: null, or the message is an answer to be continued.
void write_content(const std::string& role, FieldReader& message, const MessagesInput& input, BegunAnswer* begun,
                   JsonWriter& out) {
  const JsonValue* content = message.take("content");
  const std::string_view tag = begun == nullptr ? std::string_view() : begun->tag;
  if (begun != nullptr && role != "assistant") {
    return message.fail("role", "is \"" + role + "\"; continue_final_message continues an answer of the assistant");
  }
  if (content == nullptr) {
    const JsonValue* tool_calls = message.take("tool_calls");
    const bool says_something = role == "assistant" && tool_calls != nullptr && !is_empty(*tool_calls);
    if (!says_something || begun != nullptr) return message.fail("content", "is missing");
    out.text("content", "");
  } else if (const auto* text = content->as<std::string>()) {
    if (begun != nullptr) begun->words = *text;
    out.text("content", std::string(*text).append(tag));
  } else if (const auto* parts = content->as<JsonValue::Array>()) {
    const std::vector<std::string_view> texts = part_texts(*parts, message, input.ignored);
    if (begun != nullptr && texts.empty()) return message.fail("content", "has no text to continue");
    if (begun != nullptr) begun->words = texts.back();
    input.content_parts ? write_parts(texts, tag, out) : void(out.text("content", joined(texts).append(tag)));
  } else {
    message.wrong_type("content", "a string or a list of parts", *content);
  }
}

void write_message(FieldReader& message, const MessagesInput& input, BegunAnswer* begun, JsonWriter& out) {
  const std::string role = take_role(message);
  out.begin_object().text("role", role);
  write_content(role, message, input, begun, out);
  for (const std::string_view name : kPassedOn) {
    const JsonValue* value = message.take(name);
    if (value == nullptr || is_empty(*value)) continue;
    if (name == "tool_calls" && value->as<JsonValue::Array>() == nullptr) message.wrong_type(name, "a list", *value);
    if (name != "tool_calls" && value->as<std::string>() == nullptr) message.wrong_type(name, "a string", *value);
    out.key(name).value(*value);
  }
  take_rest(message, kOfMessages, "messages", input.ignored);
  out.end_object();
}

}  // namespace

ChatEnd read_chat_end(FieldReader& fields) {
  ChatEnd end;
  end.continues = fields.boolean("continue_final_message").value_or(false);
  const std::optional<bool> begins = fields.boolean("add_generation_prompt");
  end.begins = begins.value_or(!end.continues);
  if (end.continues && end.begins) {
    fields.fail("continue_final_message",
                "and add_generation_prompt cannot both be true: an answer goes on, or a new one begins");
  }
  return end;
}

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
    if (!message.error()) write_message(message, input, i + 1 == list->size() ? input.begun : nullptr, writer);
    if (message.error()) return *message.error();
  }
  writer.end_array();
  return json;
}

}  // namespace quire
