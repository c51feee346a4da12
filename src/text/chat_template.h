// Chat templates: the Jinja that models carry, rendered as Hugging Face transformers renders it (trim_blocks,
// lstrip_blocks, loop controls, tojson without HTML escaping, raise_exception, strftime_now).
//
// Immutable after parse, usable from any thread. Rendering is bounded in steps, depth and output size; a limit, a
// raise_exception or an error in the template is a Status whose message says what and where.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/work_budget.h"
#include "text/marked_text.h"

namespace quire {

struct ChatInput {
  // JSON texts. Key order is kept. `tools` may be empty: then the variable is none, as transformers passes it.
  std::string messages;
  std::string tools;
  // A JSON object of the caller's further variables: add_generation_prompt, enable_thinking, ... By whatever name, they
  // are the caller's words.
  std::string kwargs;
  // Pins strftime_now; seconds since the epoch, read as UTC. Absent: the local clock.
  std::optional<int64_t> now = std::nullopt;
  // A JSON object of what the model gives its template: bos_token, eos_token, ... Strings in it are the template's
  // words. Where kwargs has the same name, that counts.
  std::string variables = {};
};

class ChatTemplate {
 public:
  // Fails with line and construct when the template uses what the interpreter does not know.
  static Result<ChatTemplate> parse(std::string_view source);

  // Of `messages`, the template's words are roles that the protocol knows (system, developer, user, assistant, tool,
  // function); the model's are "content" and "reasoning_content" of messages whose role is assistant.
  // Ends early, with the code of the budget's Status, when `budget` is spent (null: no such end).
  Result<MarkedText> render(const ChatInput& input, const WorkBudget* budget = nullptr) const;

  // Whether the template takes a content as a list of parts ({"type": "text", "text": ...}). Found out by rendering one:
  // a template that does not know them fails, or prints the list. As costly as a render.
  bool reads_parts() const;

  const std::string& source() const { return source_; }

  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

 private:
  struct Program;
  ChatTemplate(std::string source, std::unique_ptr<Program> program);
  std::string source_;
  std::unique_ptr<Program> program_;
};

}  // namespace quire
