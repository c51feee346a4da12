// The bodies of /v1/chat/completions and /v1/completions, read strictly into what the engine is asked for.
//
// Types and ranges of the sampling options come from the options table (options/options.h). A field that is unknown, or
// known but not supported and set so that it would change the answer, is an error that names it; with `lenient` it is
// ignored, and listed in `ignored`, unless it asks for another kind of answer (tools, response_format).
// Pure functions, any thread.
// Source: OpenAI's API reference; vLLM's documentation for the extensions (docs/api.md lists all fields).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/request.h"
#include "formats/hparams.h"
#include "json/json_value.h"
#include "options/options.h"
#include "server/api_error.h"
#include "server/begun_answer.h"

namespace quire {

class FieldReader;

enum class Api { kChat, kCompletions };

struct RequestContext {
  const Options& defaults;  // of the flags of `serve`
  const Hparams& hparams;   // the model's own sampling defaults
  int32_t vocab_size = 0;
  bool lenient = false;
  bool clamp_max_tokens = false;
  bool content_parts = false;  // the chat template takes lists of text parts as they are (ChatTemplate::reads_parts)
};

using PromptInput = std::variant<std::string, std::vector<int32_t>>;

struct GenerationCall {
  Api api = Api::kChat;
  std::string model;                 // empty: not named
  std::vector<PromptInput> prompts;  // completions
  bool add_special_tokens = true;    // completions: for prompts that are texts
  std::string messages;              // chat: a JSON array, contents as the template takes them
  std::string template_kwargs;       // chat: a JSON object
  BegunAnswer begun;                 // chat: its tag stands in `messages`
  Request request;                   // all but id, prompt, salt and the masks that need the tokenizer
  std::vector<std::string> bad_words;
  bool seed_given = false;
  bool stream = false;
  bool include_usage = false;        // stream: in a last chunk
  bool continuous_usage = false;     // stream: in every chunk
  bool echo = false;                 // completions
  bool prompt_only = false;          // max_tokens 0: the prompt is all; request.max_tokens is then 1
  bool clamp_max_tokens = false;     // to what fits beside the longest prompt
  std::vector<std::string> ignored;  // with `lenient`, harmless keys of messages, and max_tokens where it was shortened
};

using ParsedCall = std::variant<GenerationCall, ApiError>;

ParsedCall parse_generation_call(Api api, std::string_view body, const RequestContext& context);

struct MessagesInput {
  const JsonValue& messages;
  std::string_view where;             // names the list in errors
  bool content_parts = false;         // RequestContext::content_parts; else the texts of parts are joined, one a line
  std::vector<std::string>* ignored;  // keys that say nothing to a model of text are added, each once
  BegunAnswer* begun = nullptr;       // not null: the last message is an answer that is to be continued; gets its words
};

// How a chat ends before the model speaks: with an answer that is begun (continue_final_message), or where a new one
// begins (add_generation_prompt, the default).
struct ChatEnd {
  bool continues = false;
  bool begins = true;
};
// Fails `fields` where they ask for both.
ChatEnd read_chat_end(FieldReader& fields);

// The messages as templates want them, a JSON array: roles checked, "developer" read as "system".
std::variant<std::string, ApiError> normalize_messages(const MessagesInput& input);

}  // namespace quire
