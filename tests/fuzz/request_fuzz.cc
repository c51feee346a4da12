// Any bytes as the body of a request for a completion: an error that can be sent and says what is wrong, or a request
// within the limits of docs/api.md; the same each time.
//
// Input: "chat" or "text", with "-lenient" behind it where unknown fields are passed over, then the body after "---".
#include <cmath>
#include <string>

#include "fuzz/documents.h"
#include "json/json_value.h"
#include "server/openai_request.h"

namespace quire {
namespace {

constexpr int32_t kVocabularySize = 1000;

void check(const ApiError& error) {
  fuzz_require(error.status >= 400 && error.status < 500, "what a client sent is the client's fault");
  fuzz_require(!error.message.empty(), "an error says what is wrong");
  fuzz_require(JsonValue::parse(error_json(error)).ok(), "an error can be sent: " + error.message);
  fuzz_require(error_response(error).body.size() < 64 << 10, "an error does not send the request back");
}

bool is_token(int32_t id) { return id >= 0 && id < kVocabularySize; }

void check_sampling(const SamplingParams& sampling) {
  const Status valid = sampling.validate();
  fuzz_require(valid.ok(), "sampling is within its limits: " + valid.message());
  fuzz_require(std::isfinite(sampling.temperature), "the temperature is a number");
  for (const SamplingParams::Bias& bias : sampling.logit_bias) {
    fuzz_require(is_token(bias.id), "a bias is of a token");
  }
}

void check_messages(const std::string& text) {
  const auto messages = JsonValue::parse(text);
  fuzz_require(messages.ok() && messages->as<JsonValue::Array>() != nullptr, "messages are a list");
  for (const JsonValue& message : *messages->as<JsonValue::Array>()) {
    const JsonValue* role = message.find("role");
    const JsonValue* content = message.find("content");
    fuzz_require(role != nullptr && role->as<std::string>() != nullptr, "a message has a role");
    fuzz_require(content != nullptr && content->as<std::string>() != nullptr, "a message's content is a text");
  }
}

void check(const GenerationCall& call) {
  check_sampling(call.request.sampling);
  fuzz_require(call.request.max_tokens >= -1, "max_tokens is a count");
  for (const int32_t id : call.request.stop_token_ids) fuzz_require(is_token(id), "a stop token is one");
  if (call.api == Api::kChat) {
    check_messages(call.messages);
    const auto kwargs = JsonValue::parse(call.template_kwargs);
    fuzz_require(kwargs.ok() && kwargs->as<JsonValue::Object>() != nullptr, "variables are an object");
  } else {
    fuzz_require(!call.prompts.empty(), "there is a prompt");
    for (const PromptInput& prompt : call.prompts) {
      if (const auto* ids = std::get_if<std::vector<int32_t>>(&prompt)) {
        fuzz_require(std::all_of(ids->begin(), ids->end(), is_token), "a prompt's ids are tokens");
      }
    }
  }
}

// What both must agree on, in one text.
std::string summary(const ParsedCall& parsed) {
  if (const auto* error = std::get_if<ApiError>(&parsed)) return std::to_string(error->status) + error_json(*error);
  const auto& call = std::get<GenerationCall>(parsed);
  std::string text = call.model + "|" + call.messages + "|" + call.template_kwargs;
  text += "|" + std::to_string(call.prompts.size()) + "|" + std::to_string(call.request.max_tokens);
  text += "|" + std::to_string(call.request.sampling.temperature) + "|" + std::to_string(call.stream);
  for (const std::string& name : call.ignored) text += "|" + name;
  return text;
}

}  // namespace
}  // namespace quire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace quire;
  const auto parts = split_documents({reinterpret_cast<const char*>(bytes), size}, 2);
  static const Options defaults;
  static const Hparams hparams;
  const RequestContext context = {.defaults = defaults,
                                  .hparams = hparams,
                                  .vocab_size = kVocabularySize,
                                  .lenient = parts[0].ends_with("-lenient")};
  const Api api = parts[0].starts_with("text") ? Api::kCompletions : Api::kChat;
  const ParsedCall parsed = parse_generation_call(api, parts[1], context);
  std::visit([](const auto& value) { check(value); }, parsed);
  fuzz_require(summary(parsed) == summary(parse_generation_call(api, parts[1], context)), "read alike each time");
  return 0;
}
