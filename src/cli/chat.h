// Chats of a loaded model: from messages to tokens, and a conversation that remembers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "cli/json_object.h"
#include "engine/generator.h"

namespace quire {

// The variables that a model gives its template: bos_token, eos_token and the like, where it has them.
Result<JsonObject> special_token_variables(const Checkpoint& checkpoint);

// What a chat request holds, as JSON texts: messages is a list, tools a list or absent, kwargs an object or absent.
struct ChatRequest {
  std::string messages;
  std::optional<std::string> tools = {};
  std::optional<std::string> kwargs = {};
};

// Renders with the model's template, asking for an answer unless kwargs say otherwise. Fails where the model has none.
Result<std::vector<int32_t>> encode_messages(const Generator& generator, const ChatRequest& request);

// A conversation. With a chat template its turns are messages; without one (or where `raw`) it is one growing text.
class Conversation {
 public:
  Conversation(const Generator& generator, std::string system, bool raw);

  // The tokens to answer when the user says `text` next. Changes nothing.
  Result<std::vector<int32_t>> prompt_for(const std::string& text) const;
  // The turn is over: both sides are remembered.
  void remember(const std::string& text, const std::string& answer);
  void clear();

 private:
  std::string continued(const std::string& text) const;

  const Generator& generator_;
  std::string system_;
  bool raw_;
  std::vector<std::pair<std::string, std::string>> messages_;  // role, content
  std::string transcript_;
};

}  // namespace quire
