// The JSON of answers: whole ones and the chunks of streams, for both generation endpoints.
//
// A builder belongs to one request; its id, model and time are rendered once. Field order and names are OpenAI's;
// "timings" (llama.cpp's server has them under the same names), "stop_reason" and "seed" are additions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/event.h"
#include "server/openai_request.h"
#include "text/tokenizer.h"

namespace quire {

struct AnswerIdentity {
  Api api = Api::kChat;
  std::string id;
  std::string model;
  int64_t created_s = 0;         // since the epoch
  std::optional<uint64_t> seed;  // where the server drew it and the answer depends on it
};

struct Usage {
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t completion_tokens = 0;
};

// One choice of a whole answer.
struct Choice {
  std::string text;
  std::string logprobs;  // JSON; empty: none
  std::string finish_reason;
  std::string stop_text;
};

class AnswerBuilder {
 public:
  explicit AnswerBuilder(AnswerIdentity identity);

  // Chunks are appended to `sse` as events. `usage` null: the stream has no running count.
  void append_role(int32_t choice, const Usage* usage, std::string* sse) const;  // chat: before a choice's text
  void append_text(int32_t choice, std::string_view text, std::string_view logprobs, const Usage* usage,
                   std::string* sse) const;
  // `timings` null: this is not the last choice.
  void append_finish(int32_t choice, const Choice& end, const Usage* usage, const RequestTimings* timings,
                     std::string* sse) const;
  void append_usage(const Usage& usage, const RequestTimings& timings, std::string* sse) const;
  // In streams that end with append_usage() every other chunk says "usage": null.
  void announce_usage() { usage_announced_ = true; }

  std::string whole(const std::vector<Choice>& choices, const Usage& usage, const RequestTimings& timings) const;

 private:
  void begin_chunk(int32_t choice, std::string* sse) const;
  void end_chunk(const Usage* usage, const RequestTimings* timings, std::string* sse) const;

  AnswerIdentity identity_;
  std::string chunk_head_;  // {"id":...,"model":...
  bool usage_announced_ = false;
};

// Log-probabilities of a chat answer: {"content": [...], "refusal": null}.
std::string chat_logprobs_json(const Tokenizer& tokenizer, const std::vector<TokenLogprob>& tokens);

// Log-probabilities of a completion. Offsets count characters of the text, across calls.
class CompletionLogprobs {
 public:
  CompletionLogprobs(const Tokenizer& tokenizer, int32_t top_n) : tokenizer_(tokenizer), top_n_(top_n) {}

  // A token nothing was predicted for: the first of an echoed prompt.
  void add_unscored(int32_t id);
  void add(const TokenLogprob& token);
  std::string take_json();           // of what was added since the last call
  void skip(std::string_view text);  // text that comes without tokens

 private:
  void add_token(int32_t id);

  const Tokenizer& tokenizer_;
  int32_t top_n_;
  int64_t offset_ = 0;
  std::string tokens_, logprobs_, tops_, offsets_;  // items of JSON lists
};

}  // namespace quire
