#include "server/prompt_encoder.h"

#include <utility>

#include "engine/tokenizer_source.h"
#include "json/json_writer.h"

namespace quire {
namespace {

// Two JSON objects in one; the keys of the second win. Both are from JsonWriter, so they are well-formed.
std::string merged(std::string_view defaults, std::string_view overrides) {
  const Result<JsonValue> first = JsonValue::parse(defaults);
  const Result<JsonValue> second = JsonValue::parse(overrides);
  std::string json;
  JsonWriter writer(&json);
  writer.begin_object();
  for (const JsonMember& member : *first->as<JsonValue::Object>()) {
    if (second->find(member.key) == nullptr) writer.key(member.key).value(member.value);
  }
  for (const JsonMember& member : *second->as<JsonValue::Object>()) writer.key(member.key).value(member.value);
  writer.end_object();
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
  return PromptEncoder(engine, std::move(variables));
}

std::variant<std::vector<int32_t>, ApiError> PromptEncoder::encode_chat(std::string_view messages,
                                                                        std::string_view kwargs) const {
  const ChatTemplate* chat_template = engine_.chat_template();
  if (chat_template == nullptr) {
    return ApiError{.message =
                        "the model carries no chat template: start the server with --chat-template FILE, or use "
                        "/v1/completions with a prompt of plain text",
                    .param = "messages",
                    .code = "no_chat_template"};
  }
  const Result<MarkedText> text = chat_template->render({.messages = std::string(messages),
                                                         .tools = std::string(),
                                                         .kwargs = merged(variables_, kwargs),
                                                         .now = std::nullopt});
  if (!text.ok()) {
    return ApiError{.message = text.status().message(), .param = "messages", .code = "chat_template_error"};
  }
  Result<std::vector<int32_t>> ids = engine_.tokenizer().encode_chat(*text);
  if (!ids.ok()) return api_error_of(ids.status());
  return std::move(*ids);
}

std::optional<ApiError> PromptEncoder::check_length(size_t prompt_tokens, const Request& request, Api api) const {
  const std::string_view field = api == Api::kChat ? "messages" : "prompt";
  if (prompt_tokens == 0) {
    return ApiError{.message = "\"" + std::string(field) + "\" holds no token", .param = std::string(field)};
  }
  const int64_t context = engine_.context();
  const auto used = static_cast<int64_t>(prompt_tokens);
  const int64_t wanted = request.max_tokens < 0 ? 1 : request.max_tokens;
  if (used <= context - wanted) return std::nullopt;
  std::string message = "the context is " + std::to_string(context) + " tokens; the prompt has " + std::to_string(used);
  if (request.max_tokens >= 0) {
    message +=
        " and max_tokens asks for " + std::to_string(wanted) + " (together " + std::to_string(used + wanted) + ")";
  }
  return ApiError{.message = message + ": shorten the prompt" + (request.max_tokens > 1 ? " or lower max_tokens" : ""),
                  .param = std::string(used >= context ? field : "max_tokens"),
                  .code = "context_length_exceeded"};
}

// A word may stand at the start of a text or after a space, which are different tokens.
Status PromptEncoder::encode_bad_words(const std::vector<std::string>& words, SamplingParams& sampling) const {
  for (const std::string& word : words) {
    for (const std::string& text : {word, " " + word}) {
      QUIRE_ASSIGN_OR_RETURN(std::vector<int32_t> ids, engine_.tokenizer().encode(text, {}));
      if (!ids.empty()) sampling.bad_words.push_back(std::move(ids));
    }
  }
  return {};
}

EncodedPrompts PromptEncoder::encode(GenerationCall& call) const {
  std::vector<std::vector<int32_t>> prompts;
  if (call.api == Api::kChat) {
    auto ids = encode_chat(call.messages, call.template_kwargs);
    if (auto* error = std::get_if<ApiError>(&ids)) return std::move(*error);
    prompts.push_back(std::get<std::vector<int32_t>>(std::move(ids)));
  }
  for (PromptInput& input : call.prompts) {
    if (auto* ids = std::get_if<std::vector<int32_t>>(&input)) {
      prompts.push_back(*ids);
      continue;
    }
    Result<std::vector<int32_t>> ids = engine_.tokenizer().encode(
        std::get<std::string>(input), {.add_special = call.add_special_tokens, .parse_special = true});
    if (!ids.ok()) return api_error_of(ids.status());
    prompts.push_back(std::move(*ids));
  }
  for (const auto& ids : prompts) {
    if (auto error = check_length(ids.size(), call.request, call.api)) return std::move(*error);
  }
  SamplingParams& sampling = call.request.sampling;
  if (const Status status = encode_bad_words(call.bad_words, sampling); !status.ok()) return api_error_of(status);
  if (sampling.min_tokens > 0) {
    sampling.min_tokens_mask = call.request.stop_token_ids;
    const auto ends = engine_.tokenizer().end_of_generation_ids();
    if (!call.request.ignore_eos)
      sampling.min_tokens_mask.insert(sampling.min_tokens_mask.end(), ends.begin(), ends.end());
  }
  return prompts;
}

}  // namespace quire
