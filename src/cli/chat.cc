#include "cli/chat.h"

#include "engine/tokenizer_source.h"

namespace quire {

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
    : generator_(generator), system_(std::move(system)), raw_(raw || generator.chat_template() == nullptr) {
  clear();
}

void Conversation::clear() {
  messages_.clear();
  if (!system_.empty()) messages_.emplace_back("system", system_);
  transcript_ = system_;
}

// A text goes on where the answer before it ended; a later turn begins on a line of its own.
std::string Conversation::continued(const std::string& text) const {
  const bool needs_break = !transcript_.empty() && !transcript_.ends_with('\n');
  return transcript_ + (needs_break ? "\n" : "") + text;
}

Result<std::vector<int32_t>> Conversation::prompt_for(const std::string& text) const {
  if (raw_) return generator_.tokenizer().encode(continued(text), {.add_special = true});
  auto messages = messages_;
  messages.emplace_back("user", text);
  return encode_messages(generator_, {.messages = messages_json(messages)});
}

void Conversation::remember(const std::string& text, const std::string& answer) {
  transcript_ = continued(text) + answer;
  messages_.emplace_back("user", text);
  messages_.emplace_back("assistant", answer);
}

}  // namespace quire
