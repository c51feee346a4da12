#include "server/prompt_encoder.h"

#include <algorithm>
#include <utility>

#include "json/json_writer.h"
#include "vocab/tokenizer_source.h"

namespace quire {
namespace {

std::string info_json(const std::vector<std::pair<std::string, std::string>>& specials, const ChatTemplate* chat) {
  std::string json;
  JsonWriter out(&json);
  out.begin_object();
  for (const char* name : {"bos_token", "eos_token", "pad_token", "unk_token"}) {
    const auto is_named = [&](const auto& special) { return special.first == name; };
    if (std::ranges::none_of(specials, is_named)) out.null(name);
  }
  for (const auto& [name, text] : specials) out.text(name, text);
  chat != nullptr ? out.text("chat_template", chat->source()) : out.null("chat_template");
  out.end_object();
  return json;
}

}  // namespace

Result<PromptEncoder> PromptEncoder::create(const Engine& engine) {
  QUIRE_ASSIGN_OR_RETURN(const auto specials, special_token_texts(engine.checkpoint()));
  std::string variables;
  JsonWriter writer(&variables);
  writer.begin_object();
  for (const auto& [name, text] : specials) writer.text(name, text);
  writer.end_object();
  return PromptEncoder(engine, std::move(variables), info_json(specials, engine.chat_template()));
}

std::variant<std::vector<int32_t>, ApiError> PromptEncoder::encode_chat(std::string_view messages,
                                                                        std::string_view kwargs,
                                                                        const BegunAnswer& begun,
                                                                        const WorkBudget& budget) const {
  const ChatTemplate* chat_template = engine_.chat_template();
  if (chat_template == nullptr) {
    return ApiError{.message =
                        "the model carries no chat template: start the server with --chat-template FILE, or use "
                        "/v1/completions with a prompt of plain text",
                    .param = "messages",
                    .code = "no_chat_template"};
  }
  Result<MarkedText> text = chat_template->render({.messages = std::string(messages),
                                                   .tools = std::string(),
                                                   .kwargs = std::string(kwargs),
                                                   .now = std::nullopt,
                                                   .variables = variables_},
                                                  &budget);
  if (budget.spent()) return api_error_of(budget.why());
  if (!text.ok()) {
    return ApiError{.message = text.status().message(), .param = "messages", .code = "chat_template_error"};
  }
  if (!begun.tag.empty()) {
    if (const Status status = end_behind(begun, &*text); !status.ok()) {
      return ApiError{.message = status.message(), .param = "continue_final_message", .code = "chat_template_error"};
    }
  }
  if (auto error = check_size(text->text.size())) {
    error->param = "messages";
    return std::move(*error);
  }
  Result<std::vector<int32_t>> ids = engine_.tokenizer().encode_chat(*text, &budget);
  if (!ids.ok()) return api_error_of(ids.status());
  return std::move(*ids);
}

std::optional<ApiError> PromptEncoder::check_size(size_t bytes) const {
  const int64_t tokens = engine_.tokenizer().least_tokens(bytes);
  const int64_t context = engine_.limits().context;
  if (tokens <= context) return std::nullopt;
  return ApiError{.message = "the context is " + std::to_string(context) + " tokens; the prompt of " +
                             std::to_string(bytes) + " bytes has at least " + std::to_string(tokens) +
                             ": shorten the prompt",
                  .param = "prompt",
                  .code = "context_length_exceeded"};
}

std::optional<ApiError> PromptEncoder::check(GenerationCall& call, std::vector<int32_t>& prompt) const {
  std::string_view field;
  // Who asks for no answer must not read of the one token that the engine is asked for.
  const int64_t max_tokens = std::exchange(call.request.max_tokens, call.prompt_only ? -1 : call.request.max_tokens);
  call.request.prompt.swap(prompt);
  const Status status = engine_.limits().check(call.request, &field);
  call.request.prompt.swap(prompt);
  call.request.max_tokens = max_tokens;
  if (status.ok()) return std::nullopt;
  ApiError error = api_error_of(status);
  error.param = field == "prompt" && call.api == Api::kChat ? "messages" : field;
  return error;
}

void PromptEncoder::clamp(GenerationCall& call, const std::vector<std::vector<int32_t>>& prompts) const {
  if (!call.clamp_max_tokens) return;
  const int64_t asked = call.request.max_tokens;
  for (const std::vector<int32_t>& ids : prompts) {
    const int64_t room = engine_.limits().answer_room(static_cast<int64_t>(ids.size()));
    if (room >= 1) call.request.max_tokens = std::min(call.request.max_tokens, room);
  }
  if (call.request.max_tokens < asked) call.ignored.emplace_back("max_tokens");
}

// A word may stand at the start of a text or after a space, which are different tokens.
Status PromptEncoder::encode_bad_words(const std::vector<std::string>& words, SamplingParams& sampling,
                                       const WorkBudget& budget) const {
  for (const std::string& word : words) {
    for (const std::string& text : {word, " " + word}) {
      QUIRE_ASSIGN_OR_RETURN(std::vector<int32_t> ids, engine_.tokenizer().encode(text, {}, &budget));
      if (!ids.empty()) sampling.bad_words.push_back(std::move(ids));
    }
  }
  return {};
}

EncodedPrompts PromptEncoder::encode(GenerationCall& call, const WorkBudget& budget) const {
  std::vector<std::vector<int32_t>> prompts;
  if (call.api == Api::kChat) {
    auto ids = encode_chat(call.messages, call.template_kwargs, call.begun, budget);
    if (auto* error = std::get_if<ApiError>(&ids)) return std::move(*error);
    prompts.push_back(std::get<std::vector<int32_t>>(std::move(ids)));
  }
  for (PromptInput& input : call.prompts) {
    if (auto* ids = std::get_if<std::vector<int32_t>>(&input)) {
      prompts.push_back(*ids);
      continue;
    }
    if (auto error = check_size(std::get<std::string>(input).size())) return std::move(*error);
    Result<std::vector<int32_t>> ids = engine_.tokenizer().encode(
        std::get<std::string>(input), {.add_special = call.add_special_tokens, .parse_special = true}, &budget);
    if (!ids.ok()) return api_error_of(ids.status());
    prompts.push_back(std::move(*ids));
  }
  SamplingParams& sampling = call.request.sampling;
  if (const Status status = encode_bad_words(call.bad_words, sampling, budget); !status.ok())
    return api_error_of(status);
  clamp(call, prompts);
  for (std::vector<int32_t>& ids : prompts) {
    if (auto error = check(call, ids)) return std::move(*error);
  }
  return prompts;
}

}  // namespace quire
