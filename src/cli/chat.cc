#include "cli/chat.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "json/json_value.h"
#include "json/json_writer.h"
#include "server/openai_request.h"
#include "vocab/tokenizer_source.h"

namespace quire {
namespace {

void write_message(std::string_view role, std::string_view text, JsonWriter& out) {
  out.begin_object().text("role", role).text("content", text).end_object();
}

std::string message_json(std::string_view role, std::string_view text) {
  std::string json;
  JsonWriter out(&json);
  write_message(role, text, out);
  return json;
}

}  // namespace

Result<JsonObject> special_token_variables(const Checkpoint& checkpoint) {
  QUIRE_ASSIGN_OR_RETURN(const auto tokens, special_token_texts(checkpoint));
  JsonObject variables;
  for (const auto& [name, text] : tokens) variables.text(name, text);
  return variables;
}

Result<std::vector<int32_t>> encode_messages(const Generator& generator, const ChatRequest& request) {
  const ChatTemplate* chat_template = generator.chat_template();
  if (chat_template == nullptr) {
    return unsupported(generator.checkpoint().path() +
                       ": carries no chat template; send a prompt of plain text instead");
  }
  QUIRE_ASSIGN_OR_RETURN(const JsonObject variables, special_token_variables(generator.checkpoint()));
  JsonObject defaults;
  defaults.boolean("add_generation_prompt", true);
  QUIRE_ASSIGN_OR_RETURN(const MarkedText text,
                         chat_template->render({.messages = request.messages,
                                                .tools = request.tools.value_or(std::string()),
                                                .kwargs = merge_json(defaults, request.kwargs.value_or("{}")),
                                                .now = std::nullopt,
                                                .variables = variables.line()}));
  return generator.tokenizer().encode_chat(text);
}

Conversation::Conversation(const Generator& generator, std::string system, bool raw)
    : generator_(generator), system_(std::move(system)), raw_(raw || generator.chat_template() == nullptr) {}

void Conversation::clear() { messages_.clear(); }

size_t Conversation::turns() const {
  return static_cast<size_t>(std::ranges::count(messages_, std::string_view("user"), &Message::role));
}

size_t Conversation::begin_of_turn(size_t turn) const {
  for (size_t i = 0; i < messages_.size(); ++i) {
    if (messages_[i].role == "user" && turn-- == 0) return i;
  }
  return messages_.size();
}

// What stands before the first turn stays.
template <typename Visit>
void Conversation::visit(size_t without, Visit&& visit) const {
  const size_t first = begin_of_turn(0);
  const size_t kept = begin_of_turn(without);
  for (size_t i = 0; i < messages_.size(); ++i) {
    if (i < first || i >= kept) visit(messages_[i]);
  }
}

void Conversation::drop_oldest(size_t turns) {
  const auto at = [this](size_t turn) { return messages_.begin() + static_cast<std::ptrdiff_t>(begin_of_turn(turn)); };
  messages_.erase(at(0), at(turns));
}

// An answer goes on where its prompt ended; every other text begins on a line of its own.
std::string Conversation::transcript(size_t without) const {
  std::string text = system_;
  visit(without, [&](const Message& message) {
    if (message.role != "assistant" && !text.empty() && !text.ends_with('\n')) text += '\n';
    text += message.text;
  });
  return text;
}

Result<std::vector<int32_t>> Conversation::prompt_for(const std::string& text, size_t without) const {
  if (raw_) {
    std::string before = transcript(without);
    if (!before.empty() && !before.ends_with('\n')) before += '\n';
    return generator_.tokenizer().encode(before + text, {.add_special = true});
  }
  std::string json;
  JsonWriter out(&json);
  out.begin_array();
  if (!system_.empty()) write_message("system", system_, out);
  visit(without, [&](const Message& message) { out.raw(message.json); });
  write_message("user", text, out);
  out.end_array();
  return encode_messages(generator_, {.messages = std::move(json)});
}

void Conversation::remember(const std::string& text, const std::string& answer) {
  messages_.push_back({"user", text, message_json("user", text)});
  messages_.push_back({"assistant", answer, message_json("assistant", answer)});
}

std::string Conversation::messages_json() const {
  std::string json = "[";
  const auto add = [&json](const std::string& message) { json.append(json.size() > 1 ? ",\n " : "").append(message); };
  if (!system_.empty()) add(message_json("system", system_));
  for (const Message& message : messages_) add(message.json);
  return json + "]\n";
}

Status Conversation::load(std::string_view json, const std::string& name) {
  Result<JsonValue> document = JsonValue::parse(json);
  if (!document.ok()) return invalid_argument(name + ": " + document.status().message());
  const JsonValue* list = document->find("messages");
  std::vector<std::string> ignored;
  const auto normal =
      normalize_messages({.messages = list != nullptr ? *list : *document, .where = "messages", .ignored = &ignored});
  if (const auto* error = std::get_if<ApiError>(&normal)) {
    return invalid_argument(name + ": " + error->message + "; /save writes such a list");
  }
  QUIRE_ASSIGN_OR_RETURN(const JsonValue checked, JsonValue::parse(std::get<std::string>(normal)));
  std::string system;
  std::vector<Message> messages;
  for (const JsonValue& one : *checked.as<JsonValue::Array>()) {
    const std::string& role = *one.find("role")->as<std::string>();
    const std::string& text = *one.find("content")->as<std::string>();
    if (role == "system" && messages.empty() && system.empty()) {
      system = text;
      continue;
    }
    std::string whole;
    JsonWriter(&whole).value(one);
    messages.push_back({role, text, std::move(whole)});
  }
  system_ = std::move(system);
  messages_ = std::move(messages);
  return {};
}

Result<std::optional<size_t>> fewest_to_drop(size_t turns, const std::function<Result<bool>(size_t without)>& fits) {
  QUIRE_ASSIGN_OR_RETURN(const bool all_fit, fits(0));
  if (all_fit) return std::optional<size_t>(0);
  QUIRE_ASSIGN_OR_RETURN(const bool none_fits, fits(turns));
  if (!none_fits) return std::optional<size_t>();
  size_t too_few = 0;
  size_t enough = turns;
  while (enough - too_few > 1) {
    const size_t middle = too_few + (enough - too_few) / 2;
    QUIRE_ASSIGN_OR_RETURN(const bool fitting, fits(middle));
    (fitting ? enough : too_few) = middle;
  }
  return std::optional(enough);
}

}  // namespace quire
