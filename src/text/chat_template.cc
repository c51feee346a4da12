#include "text/chat_template.h"

#include "text/jinja/compiler.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/json.h"

namespace quire {

using jinja::Kind;
using jinja::Origin;
using jinja::Runtime;
using jinja::Value;

struct ChatTemplate::Program : jinja::Program {};

namespace {

// bos_token, eos_token, image_token and their like are the model's own words, whoever passes them.
bool is_special_token(std::string_view name) { return name.ends_with("_token") || name == "additional_special_tokens"; }

// The value, strings and lists of strings alike, with the template as its author.
Value as_template(Runtime& runtime, const Value& value) {
  if (value.is(Kind::kString)) return runtime.string(value.text().bytes);
  if (!value.is(Kind::kList)) return value;
  std::vector<Value> items;
  for (const Value& item : value.sequence().items()) {
    items.push_back(item.is(Kind::kString) ? runtime.string(item.text().bytes) : item);
  }
  return make_list(runtime.heap(), std::move(items));
}

Result<jinja::Variables> variables_of(Runtime& runtime, const ChatInput& input) {
  QUIRE_ASSIGN_OR_RETURN(Value messages, parse_json(runtime, input.messages, "messages"));
  Value tools = Value::none();
  if (!input.tools.empty()) {
    QUIRE_ASSIGN_OR_RETURN(tools, parse_json(runtime, input.tools, "tools"));
  }
  jinja::Variables variables;
  if (!input.kwargs.empty()) {
    QUIRE_ASSIGN_OR_RETURN(const Value kwargs, parse_json(runtime, input.kwargs, "kwargs"));
    if (!kwargs.is(Kind::kDict)) return invalid_argument("kwargs: expected a JSON object");
    for (const auto& [key, value] : kwargs.dict().entries()) {
      const std::string& name = key.text().bytes;
      if (name == "messages" || name == "tools") {
        return invalid_argument("kwargs: '" + name + "' is passed on its own, not among the further variables");
      }
      variables.emplace_back(name, is_special_token(name) ? as_template(runtime, value) : value);
    }
  }
  // What transformers passes where the caller gives nothing; the first of equal names counts.
  variables.emplace_back("messages", std::move(messages));
  variables.emplace_back("tools", std::move(tools));
  variables.emplace_back("documents", Value::none());
  variables.emplace_back("add_generation_prompt", Value::boolean(false));
  return variables;
}

MarkedText marked(jinja::Text text) {
  MarkedText result;
  text.for_each_run(0, text.bytes.size(), [&result](size_t begin, size_t end, Origin origin) {
    result.spans.push_back({begin, end, origin == Origin::kTemplate});
  });
  result.text = std::move(text.bytes);
  return result;
}

Status in_template(const Status& status) { return {status.code(), "chat template, " + status.message()}; }

}  // namespace

ChatTemplate::ChatTemplate(std::unique_ptr<Program> program) : program_(std::move(program)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

Result<ChatTemplate> ChatTemplate::parse(std::string_view source) {
  auto program = jinja::compile(source);
  if (!program.ok()) return in_template(program.status());
  return ChatTemplate(std::make_unique<Program>(Program{std::move(*program)}));
}

Result<MarkedText> ChatTemplate::render(const ChatInput& input) const {
  Runtime runtime(input.now);
  QUIRE_ASSIGN_OR_RETURN(auto variables, variables_of(runtime, input));
  auto text = jinja::Interpreter(runtime, *program_, std::move(variables)).run();
  if (!text.ok()) return in_template(text.status());
  return marked(std::move(*text));
}

}  // namespace quire
