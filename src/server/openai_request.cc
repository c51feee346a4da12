#include "server/openai_request.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "engine/sampling_defaults.h"
#include "json/json_writer.h"
#include "server/field_reader.h"

namespace quire {
namespace {

constexpr int64_t kMostNumber = INT32_MAX;  // what may run is for RequestLimits to say
constexpr int64_t kMaxLogprobs = 20;
constexpr size_t kMaxPrompts = 1024;
constexpr size_t kMaxBadWords = 1024;
constexpr size_t kMaxBadWordBytes = 64 << 10;  // of all
constexpr size_t kMaxTemplateKwargs = 256;
constexpr std::string_view kUnknownField =
    "is not a field that quire knows: leave it out, or start the server with --lenient";
constexpr int64_t kDefaultCompletionTokens = 16;  // OpenAI's

// Fields that say something to OpenAI's service or to the cache: no answer depends on them.
constexpr std::array<std::string_view, 10> kHarmless = {"user",
                                                        "metadata",
                                                        "store",
                                                        "service_tier",
                                                        "safety_identifier",
                                                        "prompt_cache_key",
                                                        "prompt_cache_retention",
                                                        "prediction",
                                                        "parallel_tool_calls",
                                                        "cache_prompt"};

bool never(const JsonValue&) { return false; }

bool is_empty_list(const JsonValue& value) {
  const auto* list = value.as<JsonValue::Array>();
  return list != nullptr && list->empty();
}

bool is_text(const JsonValue& value, std::string_view wanted) {
  const auto* text = value.as<std::string>();
  return text != nullptr && *text == wanted;
}

bool is_no_tool_choice(const JsonValue& value) { return is_text(value, "none") || is_text(value, "auto"); }

bool is_plain_text_format(const JsonValue& value) {
  const JsonValue* type = value.find("type");
  return type != nullptr && is_text(*type, "text");
}

bool is_text_only(const JsonValue& value) {
  const auto* list = value.as<JsonValue::Array>();
  return list != nullptr && list->size() == 1 && is_text(list->front(), "text");
}

// Fields that would change the answer and that quire does not act on, with the values that ask for nothing. Who asks for
// another kind of answer cannot use the usual one: such fields are refused even by a lenient server.
struct UnsupportedField {
  std::string_view name;
  bool (*asks_for_nothing)(const JsonValue&);
  bool shapes_answer = false;
};

constexpr UnsupportedField kUnsupported[] = {
    {"tools", is_empty_list, true},
    {"tool_choice", is_no_tool_choice, true},
    {"functions", is_empty_list, true},
    {"function_call", is_no_tool_choice, true},
    {"response_format", is_plain_text_format, true},
    {"modalities", is_text_only, true},
    {"audio", never, true},
    {"web_search_options", never},
    {"reasoning_effort", [](const JsonValue& value) { return is_text(value, "none"); }},
    {"verbosity", [](const JsonValue& value) { return is_text(value, "medium"); }},
    {"suffix", [](const JsonValue& value) { return is_text(value, ""); }},
};

// "7", not "07" or "+7": so that keys that differ are ids that differ.
std::optional<int32_t> canonical_id(std::string_view text) {
  int32_t id = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (text.front() == '-' || (text.size() > 1 && text.front() == '0')) return std::nullopt;
  return id;
}

class CallParser {
 public:
  CallParser(Api api, const JsonValue& document, const RequestContext& context)
      : context_(context), fields_(document), options_(context.defaults) {
    call_.api = api;
  }

  ParsedCall parse() {
    if (fields_.error()) return *fields_.error();
    call_.model = fields_.text("model").value_or("");
    call_.clamp_max_tokens = context_.clamp_max_tokens;
    call_.api == Api::kChat ? read_chat() : read_prompts();
    read_shape();
    read_logprobs();
    read_options();
    read_logit_bias();
    read_rest();
    if (fields_.error()) return *fields_.error();
    return std::move(call_);
  }

 private:
  void read_chat();
  void read_prompts();
  void read_prompt_list(const JsonValue::Array& list);
  void read_shape();
  void read_stream_options();
  void read_logprobs();
  void read_options();
  void read_max_tokens();
  void read_logit_bias();
  void read_rest();

  const RequestContext& context_;
  FieldReader fields_;
  Options options_;
  GenerationCall call_;
};

void CallParser::read_chat() {
  const JsonValue* messages = fields_.take("messages");
  if (messages == nullptr) return fields_.fail("messages", "is missing");
  const ChatEnd end = read_chat_end(fields_);
  if (end.continues) call_.begun.tag = new_tag();
  auto normalized = normalize_messages({.messages = *messages,
                                        .where = "messages",
                                        .content_parts = context_.content_parts,
                                        .ignored = &call_.ignored,
                                        .begun = end.continues ? &call_.begun : nullptr});
  if (const auto* error = std::get_if<ApiError>(&normalized)) return fields_.fail(*error);
  call_.messages = std::get<std::string>(std::move(normalized));

  JsonWriter kwargs(&call_.template_kwargs);
  kwargs.begin_object().boolean("add_generation_prompt", end.begins);
  if (const JsonValue* given = fields_.take("chat_template_kwargs")) {
    const auto* members = given->as<JsonValue::Object>();
    if (members == nullptr) return fields_.wrong_type("chat_template_kwargs", "an object", *given);
    if (members->size() > kMaxTemplateKwargs) {
      return fields_.fail("chat_template_kwargs", "may hold " + std::to_string(kMaxTemplateKwargs) + " names at most");
    }
    for (const JsonMember& member : *members) {
      if (member.key == "add_generation_prompt" || member.key == "continue_final_message") {
        return fields_.fail("chat_template_kwargs", "may not hold " + member.key + ", which is a field of its own");
      }
      kwargs.key(member.key).value(member.value);
    }
  }
  kwargs.end_object();
}

void CallParser::read_prompts() {
  const JsonValue* prompt = fields_.take("prompt");
  if (prompt == nullptr) return fields_.fail("prompt", "is missing");
  if (const auto* text = prompt->as<std::string>()) {
    call_.prompts.emplace_back(*text);
  } else if (const auto* list = prompt->as<JsonValue::Array>()) {
    read_prompt_list(*list);
  } else {
    fields_.wrong_type("prompt", "a string, a list of strings, or lists of token ids", *prompt);
  }
  call_.add_special_tokens = fields_.boolean("add_special_tokens").value_or(true);
  call_.echo = fields_.boolean("echo").value_or(false);
}

void CallParser::read_prompt_list(const JsonValue::Array& list) {
  const std::string range = "each 0 to " + std::to_string(context_.vocab_size - 1);
  if (list.empty()) return fields_.fail("prompt", "holds nothing");
  if (integer_of(list.front())) {
    auto ids = token_ids(list, context_.vocab_size);
    if (!ids) return fields_.fail("prompt", "must hold token ids only, " + range);
    call_.prompts.emplace_back(std::move(*ids));
    return;
  }
  if (list.size() > kMaxPrompts) {
    return fields_.fail("prompt", "holds " + std::to_string(list.size()) + " prompts; a request may have " +
                                      std::to_string(kMaxPrompts));
  }
  for (size_t i = 0; i < list.size(); ++i) {
    const auto* text = list[i].as<std::string>();
    const auto* tokens = list[i].as<JsonValue::Array>();
    auto ids = tokens == nullptr ? std::nullopt : token_ids(*tokens, context_.vocab_size);
    if (text == nullptr && !ids) {
      return fields_.fail("prompt[" + std::to_string(i) + "]", "must be a string or a list of token ids, " + range);
    }
    text != nullptr ? call_.prompts.emplace_back(*text) : call_.prompts.emplace_back(std::move(*ids));
  }
}

void CallParser::read_shape() {
  call_.request.choices = static_cast<int32_t>(fields_.integer("n", 1, kMostNumber).value_or(1));
  if (const auto best_of = fields_.integer("best_of", 1, kMostNumber); best_of && *best_of != call_.request.choices) {
    fields_.fail("best_of", "is not supported unless it equals n", "unsupported");
  }
  call_.stream = fields_.boolean("stream").value_or(false);
  read_stream_options();
}

void CallParser::read_stream_options() {
  const JsonValue* given = fields_.take("stream_options");
  if (given == nullptr) return;
  if (!call_.stream) return fields_.fail("stream_options", "is allowed with \"stream\": true only");
  FieldReader options(*given, "stream_options.");
  call_.include_usage = options.boolean("include_usage").value_or(false);
  call_.continuous_usage = options.boolean("continuous_usage_stats").value_or(false);
  options.take("include_obfuscation");  // padding against eavesdroppers of encrypted traffic: of no use here
  if (options.error()) return fields_.fail(*options.error());
  for (const std::string& name : options.rest()) {
    if (!context_.lenient) return fields_.fail(name, std::string(kUnknownField), "unknown_field");
    call_.ignored.push_back(name);
  }
}

void CallParser::read_logprobs() {
  if (call_.api == Api::kCompletions) {
    if (const auto count = fields_.integer("logprobs", 0, kMaxLogprobs)) {
      call_.request.logprobs = static_cast<int32_t>(*count);
    }
    call_.request.prompt_logprobs = call_.echo && call_.request.logprobs >= 0;
    return;
  }
  const bool wanted = fields_.boolean("logprobs").value_or(false);
  const auto top = fields_.integer("top_logprobs", 0, kMaxLogprobs);
  if (top && !wanted) return fields_.fail("top_logprobs", "is allowed with \"logprobs\": true only");
  if (wanted) call_.request.logprobs = static_cast<int32_t>(top.value_or(0));
}

void CallParser::read_options() {
  read_max_tokens();
  for (const OptionRow& row : option_table()) {
    if (!row.in_request || (row.commands & kServe) == 0 || row.name == "max-tokens") continue;
    const bool given = fields_.option(options_, row);
    if (row.name == "seed") call_.seed_given = given || options_.seed.has_value();
  }
  Request& request = call_.request;
  if (options_.max_tokens) {
    request.max_tokens = *options_.max_tokens;
  } else if (call_.api == Api::kCompletions) {
    request.max_tokens = kDefaultCompletionTokens;
  }
  if (call_.prompt_only) request.max_tokens = 1;
  if (const Status ends = set_ends(options_, request); !ends.ok()) {
    fields_.fail({.message = ends.message(), .param = "stop"});
  }
  request.priority = static_cast<int32_t>(options_.priority);
  request.deadline_ms = options_.deadline_ms;
  request.max_queue_ms = static_cast<int64_t>(options_.max_queue_s * 1000.0);
  if (request.max_tokens >= 0 && options_.min_tokens > request.max_tokens && !call_.prompt_only) {
    fields_.fail("min_tokens", "is above max_tokens, which is " + std::to_string(request.max_tokens));
  }
  request.sampling = sampling_params(options_, context_.hparams);
  if (const Status status = request.sampling.validate(); !status.ok()) fields_.fail(api_error_of(status));
}

// max_completion_tokens is chat's newer name. 0 asks for no answer: for the prompt's log-probabilities, or its count.
void CallParser::read_max_tokens() {
  constexpr int64_t kMost = 1 << 30;
  std::optional<int64_t> count = fields_.integer("max_tokens", 0, kMost);
  if (call_.api == Api::kChat) {
    const auto newer = fields_.integer("max_completion_tokens", 0, kMost);
    if (newer && count && *newer != *count) {
      fields_.fail("max_tokens", "is " + std::to_string(*count) + ", but max_completion_tokens is " +
                                     std::to_string(*newer) + "; give one of them");
    }
    if (newer) count = newer;
  }
  call_.prompt_only = count == 0;
  if (count) options_.max_tokens = count;
}

void CallParser::read_logit_bias() {
  const JsonValue* given = fields_.take("logit_bias");
  if (given == nullptr) return;
  const auto* members = given->as<JsonValue::Object>();
  if (members == nullptr) return fields_.wrong_type("logit_bias", "an object of token ids and numbers", *given);
  for (const JsonMember& member : *members) {
    const std::optional<int32_t> id = canonical_id(member.key);
    if (!id || *id >= context_.vocab_size) {
      return fields_.fail("logit_bias", "names \"" + member.key.substr(0, 40) + "\", which is no token id of 0 to " +
                                            std::to_string(context_.vocab_size - 1));
    }
    const std::optional<double> bias = number_of(member.value);
    if (!bias || !(*bias >= -100 && *bias <= 100)) {
      return fields_.fail("logit_bias." + member.key, "must be a number of -100 to 100");
    }
    call_.request.sampling.logit_bias.push_back({*id, static_cast<float>(*bias)});
  }
}

void CallParser::read_rest() {
  if (const JsonValue* given = fields_.take("bad_words")) {
    const auto* list = given->as<JsonValue::Array>();
    if (list == nullptr) return fields_.wrong_type("bad_words", "a list of strings", *given);
    size_t bytes = 0;
    for (const JsonValue& entry : *list) {
      const auto* word = entry.as<std::string>();
      if (word == nullptr || word->empty()) return fields_.fail("bad_words", "must be a list of strings, none empty");
      bytes += word->size();
      if (bytes > kMaxBadWordBytes || call_.bad_words.size() == kMaxBadWords) {
        return fields_.fail("bad_words", "may hold " + std::to_string(kMaxBadWords) + " words of " +
                                             std::to_string(kMaxBadWordBytes) + " bytes in all");
      }
      call_.bad_words.push_back(*word);
    }
  }
  for (const std::string_view name : kHarmless) fields_.take(name);
  for (const UnsupportedField& field : kUnsupported) {
    const JsonValue* value = fields_.take(field.name);
    if (value == nullptr || field.asks_for_nothing(*value)) continue;
    if (field.shapes_answer) return fields_.fail(field.name, "is not supported yet: leave it out", "unsupported");
    if (!context_.lenient)
      return fields_.fail(field.name, "is not supported: leave it out, or start the server with --lenient",
                          "unsupported");
    call_.ignored.emplace_back(field.name);
  }
  for (const std::string& name : fields_.rest()) {
    if (!context_.lenient) return fields_.fail(name, std::string(kUnknownField), "unknown_field");
    call_.ignored.push_back(name);
  }
}

}  // namespace

ParsedCall parse_generation_call(Api api, std::string_view body, const RequestContext& context) {
  const Result<JsonValue> document = JsonValue::parse(body);
  if (!document.ok()) return ApiError{.message = document.status().message(), .code = "invalid_json"};
  return CallParser(api, *document, context).parse();
}

}  // namespace quire
