#include "text/chat_template.h"

#include <algorithm>
#include <array>

#include "jinja/compiler.h"
#include "jinja/interpreter.h"
#include "jinja/json.h"

namespace quire {

using jinja::Kind;
using jinja::Origin;
using jinja::Runtime;
using jinja::Value;

struct ChatTemplate::Program : jinja::Program {};

namespace {

constexpr std::array<std::string_view, 6> kRoles = {"system", "developer", "user", "assistant", "tool", "function"};

Value string_by(Runtime& runtime, const Value& value, Origin origin) {
  return runtime.string(value.text().bytes, origin);
}

// The value, strings and lists of strings alike, with the template as its author.
Value as_template(Runtime& runtime, const Value& value) {
  if (value.is(Kind::kString)) return string_by(runtime, value, Origin::kTemplate);
  if (!value.is(Kind::kList)) return value;
  std::vector<Value> items;
  for (const Value& item : value.sequence().items()) {
    items.push_back(item.is(Kind::kString) ? string_by(runtime, item, Origin::kTemplate) : item);
  }
  return make_list(runtime.heap(), std::move(items));
}

// What an assistant said, a string or a list of parts of which "text" is what was said.
Value as_answer(Runtime& runtime, const Value& content) {
  if (content.is(Kind::kString)) return string_by(runtime, content, Origin::kModel);
  if (!content.is(Kind::kList)) return content;
  std::vector<Value> parts = content.sequence().items();
  for (Value& part : parts) {
    if (!part.is(Kind::kDict)) continue;
    jinja::Dict::Entries entries = part.dict().entries();
    for (auto& [key, value] : entries) {
      if (key.text().bytes == "text" && value.is(Kind::kString)) value = string_by(runtime, value, Origin::kModel);
    }
    part = make_dict(runtime.heap(), std::move(entries), Origin::kCaller);
  }
  return make_list(runtime.heap(), std::move(parts), Origin::kCaller);
}

bool is_role(const Value* value) {
  return value != nullptr && value->is(Kind::kString) &&
         std::find(kRoles.begin(), kRoles.end(), value->text().bytes) != kRoles.end();
}

// A message with the marks that are due to it; see ChatTemplate::render.
Value as_message(Runtime& runtime, const Value& message) {
  if (!message.is(Kind::kDict) || !is_role(message.dict().find("role"))) return message;
  const bool answer = message.dict().find("role")->text().bytes == "assistant";
  jinja::Dict::Entries entries = message.dict().entries();
  for (auto& [key, value] : entries) {
    const std::string& name = key.text().bytes;
    if (name == "role") value = string_by(runtime, value, Origin::kTemplate);
    if (answer && (name == "content" || name == "reasoning_content")) value = as_answer(runtime, value);
  }
  return make_dict(runtime.heap(), std::move(entries), Origin::kCaller);
}

Result<Value> messages_of(Runtime& runtime, const std::string& json) {
  QUIRE_ASSIGN_OR_RETURN(Value messages, parse_json(runtime, json, "messages"));
  if (!messages.is(Kind::kList)) return messages;
  std::vector<Value> marked;
  for (const Value& message : messages.sequence().items()) {
    QUIRE_RETURN_IF_ERROR(runtime.charge(1));
    marked.push_back(as_message(runtime, message));
  }
  return make_list(runtime.heap(), std::move(marked), Origin::kCaller);
}

// Appends the members of a JSON object; the first of equal names counts.
Status add_variables(Runtime& runtime, std::string_view json, std::string_view what, jinja::Variables* variables) {
  if (json.empty()) return {};
  QUIRE_ASSIGN_OR_RETURN(const Value object, parse_json(runtime, json, what));
  if (!object.is(Kind::kDict)) return invalid_argument(std::string(what) + ": expected a JSON object");
  for (const auto& [key, value] : object.dict().entries()) {
    const std::string& name = key.text().bytes;
    if (name == "messages" || name == "tools") {
      return invalid_argument(std::string(what) + ": '" + name +
                              "' is passed on its own, not among the further variables");
    }
    variables->emplace_back(name, value);
  }
  return {};
}

Result<jinja::Variables> variables_of(Runtime& runtime, const ChatInput& input) {
  QUIRE_ASSIGN_OR_RETURN(Value messages, messages_of(runtime, input.messages));
  Value tools = Value::none();
  if (!input.tools.empty()) {
    QUIRE_ASSIGN_OR_RETURN(tools, parse_json(runtime, input.tools, "tools"));
  }
  jinja::Variables variables;
  QUIRE_RETURN_IF_ERROR(add_variables(runtime, input.kwargs, "kwargs", &variables));
  const size_t callers = variables.size();
  QUIRE_RETURN_IF_ERROR(add_variables(runtime, input.variables, "variables", &variables));
  for (size_t i = callers; i < variables.size(); ++i) variables[i].second = as_template(runtime, variables[i].second);
  // What transformers passes where the caller gives nothing.
  variables.emplace_back("messages", std::move(messages));
  variables.emplace_back("tools", std::move(tools));
  variables.emplace_back("documents", Value::none());
  variables.emplace_back("add_generation_prompt", Value::boolean(false));
  return variables;
}

MarkedText marked(jinja::Text text) {
  MarkedText result;
  text.for_each_run(0, text.bytes.size(), [&result](size_t begin, size_t end, Origin origin) {
    result.spans.push_back({begin, end, origin});
  });
  result.text = std::move(text.bytes);
  return result;
}

Status in_template(const Status& status) { return {status.code(), "chat template, " + status.message()}; }

}  // namespace

ChatTemplate::ChatTemplate(std::string source, std::unique_ptr<Program> program)
    : source_(std::move(source)), program_(std::move(program)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

Result<ChatTemplate> ChatTemplate::parse(std::string_view source) {
  auto program = jinja::compile(source);
  if (!program.ok()) return in_template(program.status());
  return ChatTemplate(std::string(source), std::make_unique<Program>(Program{std::move(*program)}));
}

bool ChatTemplate::reads_parts() const {
  constexpr std::string_view kWords = "quire asks";
  const auto rendered =
      render({.messages = R"([{"role":"user","content":[{"type":"text","text":")" + std::string(kWords) + R"("}]}])",
              .tools = {},
              .kwargs = R"({"add_generation_prompt":true})",
              .variables = R"({"bos_token":"","eos_token":""})"});
  // A list that is printed shows the names of its members.
  return rendered.ok() && rendered->text.find(kWords) != std::string::npos &&
         rendered->text.find("'text'") == std::string::npos && rendered->text.find("\"text\"") == std::string::npos;
}

Result<MarkedText> ChatTemplate::render(const ChatInput& input, const WorkBudget* budget) const {
  Runtime runtime(input.now, budget);
  QUIRE_ASSIGN_OR_RETURN(auto variables, variables_of(runtime, input));
  auto text = jinja::Interpreter(runtime, *program_, std::move(variables)).run();
  if (!text.ok()) return in_template(text.status());
  return marked(std::move(*text));
}

}  // namespace quire
