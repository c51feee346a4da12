#include <cstdio>
#include <memory>
#include <optional>

#include "cli/chat.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/jsonl.h"
#include "cli/model_source.h"
#include "cli/terminal.h"
#include "formats/checkpoint.h"
#include "text/chat_template.h"
#include "vocab/tokenizer_source.h"

namespace quire {
namespace {

constexpr int64_t kMaxTemplateBytes = 16 << 20;

// A template and the variables that its model gives it.
struct Source {
  ChatTemplate chat_template;
  JsonObject variables;
};

Result<ChatTemplate> parse_template(const std::string& text, const std::string& origin) {
  Result<ChatTemplate> parsed = ChatTemplate::parse(text);
  if (!parsed.ok()) return Status(parsed.status().code(), origin + ": " + parsed.status().message());
  return parsed;
}

Result<Source> open_source(const Options& options) {
  if (!options.template_file.empty()) {
    QUIRE_ASSIGN_OR_RETURN(const std::string text, read_file(options.template_file, kMaxTemplateBytes));
    QUIRE_ASSIGN_OR_RETURN(ChatTemplate chat_template, parse_template(text, options.template_file));
    // The model's BOS and others, as `serve --chat-template` gives them; a template alone needs no model.
    QUIRE_ASSIGN_OR_RETURN(const std::string model, find_local_model(options));
    if (model.empty()) {
      note(options.model + " is not here, so bos_token and other special tokens are undefined; see --model.");
      return Source{std::move(chat_template), JsonObject()};
    }
    QUIRE_ASSIGN_OR_RETURN(const auto checkpoint, Checkpoint::open(model, CheckpointParts::kVocabulary));
    QUIRE_ASSIGN_OR_RETURN(JsonObject variables, special_token_variables(*checkpoint));
    return Source{std::move(chat_template), std::move(variables)};
  }
  QUIRE_ASSIGN_OR_RETURN(const std::string path, find_model(options));
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<Checkpoint> checkpoint, Checkpoint::open(path));
  QUIRE_ASSIGN_OR_RETURN(const std::optional<std::string> text, chat_template_source(*checkpoint));
  if (!text) return unsupported(path + ": carries no chat template; name one with --template-file");
  QUIRE_ASSIGN_OR_RETURN(JsonObject variables, special_token_variables(*checkpoint));
  QUIRE_ASSIGN_OR_RETURN(ChatTemplate chat_template, parse_template(*text, path));
  return Source{std::move(chat_template), std::move(variables)};
}

Result<JsonObject> answer(const Source& source, const std::optional<int64_t>& now, JsonRequest& request) {
  QUIRE_ASSIGN_OR_RETURN(const auto messages, request.take_array("messages"));
  QUIRE_ASSIGN_OR_RETURN(const auto tools, request.take_array("tools"));
  QUIRE_ASSIGN_OR_RETURN(const auto kwargs, request.take_object("kwargs"));
  QUIRE_RETURN_IF_ERROR(request.finish());
  if (!messages) return invalid_argument("the request has no \"messages\"");
  QUIRE_ASSIGN_OR_RETURN(const MarkedText text, source.chat_template.render({.messages = *messages,
                                                                             .tools = tools.value_or(std::string()),
                                                                             .kwargs = kwargs.value_or("{}"),
                                                                             .now = now,
                                                                             .variables = source.variables.line()}));
  JsonObject object;
  object.text("text", text.text);
  return object;
}

}  // namespace

Status command_template(const Invocation& invocation) {
  const Options& options = invocation.options;
  std::optional<int64_t> now;
  if (!options.now.empty()) {
    QUIRE_ASSIGN_OR_RETURN(now, parse_time(options.now));
  }
  QUIRE_ASSIGN_OR_RETURN(Source source, open_source(options));
  if (options.jsonl) {
    return answer_lines([&](JsonRequest& request) { return answer(source, now, request); });
  }
  QUIRE_ASSIGN_OR_RETURN(const std::string message, argument_or_input(invocation.text, "message"));
  std::vector<std::pair<std::string, std::string>> messages;
  if (!options.system.empty()) messages.emplace_back("system", options.system);
  messages.emplace_back("user", message);
  JsonObject kwargs;
  kwargs.boolean("add_generation_prompt", true);
  QUIRE_ASSIGN_OR_RETURN(const MarkedText text, source.chat_template.render({.messages = messages_json(messages),
                                                                             .tools = {},
                                                                             .kwargs = kwargs.line(),
                                                                             .now = now,
                                                                             .variables = source.variables.line()}));
  std::fputs(text.text.c_str(), stdout);
  if (!text.text.ends_with('\n')) std::fputs("\n", stdout);
  return {};
}

}  // namespace quire
