// Chats of a loaded model: from messages to tokens, and a conversation that remembers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
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
// A turn is a message of the user and what follows it up to the next one.
class Conversation {
 public:
  Conversation(const Generator& generator, std::string system, bool raw);

  // The tokens to answer when the user says `text` next, with the oldest `without` turns left out. Changes nothing.
  Result<std::vector<int32_t>> prompt_for(const std::string& text, size_t without = 0) const;
  // The turn is over: both sides are remembered.
  void remember(const std::string& text, const std::string& answer);

  size_t turns() const;
  void drop_oldest(size_t turns);
  void clear();  // all but the system message

  const std::string& system() const { return system_; }  // empty: none
  void set_system(std::string text) { system_ = std::move(text); }

  // The `messages` of the API: a JSON array, one message a line.
  std::string messages_json() const;
  // Takes such a list, or an object that holds one under "messages", in place of everything. Fails, and changes nothing, on
  // what the API would refuse; `name` is what the errors call it.
  Status load(std::string_view json, const std::string& name);

 private:
  struct Message {
    std::string role;
    std::string text;
    std::string json;  // with all its keys
  };
  size_t begin_of_turn(size_t turn) const;  // as an index; of those behind the last one: the end
  std::string transcript(size_t without) const;
  template <typename Visit>
  void visit(size_t without, Visit&& visit) const;

  const Generator& generator_;
  std::string system_;
  bool raw_;
  std::vector<Message> messages_;  // without the system message at the beginning
};

// The fewest turns, of 0 to `turns`, without which a prompt fits. `fits` holds for all numbers beyond the first that it holds
// for, and is asked a few times only. Nothing: it does not fit even without all of them.
Result<std::optional<size_t>> fewest_to_drop(size_t turns, const std::function<Result<bool>(size_t without)>& fits);

}  // namespace quire
