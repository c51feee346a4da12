// From what a client wrote to token ids: chat template, tokenizer, and whether the engine can run it.
//
// Immutable after creation, any thread: long prompts are encoded on a worker.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/work_budget.h"
#include "engine/engine.h"
#include "server/api_error.h"
#include "server/openai_request.h"

namespace quire {

using EncodedPrompts = std::variant<std::vector<std::vector<int32_t>>, ApiError>;

class PromptEncoder {
 public:
  // `engine` outlives the encoder.
  static Result<PromptEncoder> create(const Engine& engine);

  // One list of ids a prompt, each with room for an answer. Also fills in what of the request needs the tokenizer. Fails
  // when `budget` is spent.
  EncodedPrompts encode(GenerationCall& call, const WorkBudget& budget) const;

  // A JSON object of the special tokens by name and the source of the chat template, for clients that tokenize through this
  // server. "bos_token", "eos_token", "pad_token", "unk_token" and "chat_template" are always there: null, where the model
  // has none.
  const std::string& tokenizer_info() const { return tokenizer_info_; }

  bool content_parts() const { return content_parts_; }  // RequestContext::content_parts

  // `messages`: JSON array; `kwargs`: JSON object; `begun`: an answer whose tag stands in the last message.
  std::variant<std::vector<int32_t>, ApiError> encode_chat(std::string_view messages, std::string_view kwargs,
                                                           const BegunAnswer& begun, const WorkBudget& budget) const;

 private:
  PromptEncoder(const Engine& engine, std::string variables, std::string tokenizer_info)
      : engine_(engine),
        variables_(std::move(variables)),
        tokenizer_info_(std::move(tokenizer_info)),
        content_parts_(engine.chat_template() != nullptr && engine.chat_template()->reads_parts()) {}

  // An error for a text that has too many tokens however it is encoded.
  std::optional<ApiError> check_size(size_t bytes) const;
  // What RequestLimits says of the call with this prompt, in the API's words.
  std::optional<ApiError> check(GenerationCall& call, std::vector<int32_t>& prompt) const;
  // Lowers max_tokens to what fits beside the longest prompt, where the server does so, and says so in `ignored`.
  void clamp(GenerationCall& call, const std::vector<std::vector<int32_t>>& prompts) const;
  Status encode_bad_words(const std::vector<std::string>& words, SamplingParams& sampling,
                          const WorkBudget& budget) const;

  const Engine& engine_;
  std::string variables_;  // what the model gives its template: {"bos_token":"<s>",...}
  std::string tokenizer_info_;
  bool content_parts_;
};

}  // namespace quire
