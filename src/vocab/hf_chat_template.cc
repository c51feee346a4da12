#include <nlohmann/json.hpp>

#include "vocab/hf_tokenizer.h"

namespace quire {
namespace {

using Json = nlohmann::json;

Result<Json> parse_document(const Checkpoint& checkpoint, const char* name) {
  const std::string* text = checkpoint.document(name);
  if (text == nullptr) return Json::object();
  Json document = Json::parse(*text, nullptr, false);
  if (!document.is_object()) return corrupt(std::string(name) + " is not a JSON object");
  return document;
}

}  // namespace

Result<std::optional<std::string>> hf_chat_template(const Checkpoint& checkpoint) {
  if (const std::string* text = checkpoint.document("chat_template.jinja")) return std::optional<std::string>(*text);
  QUIRE_ASSIGN_OR_RETURN(const Json config, parse_document(checkpoint, "tokenizer_config.json"));
  const auto it = config.find("chat_template");
  if (it == config.end() || it->is_null()) return std::optional<std::string>();
  if (it->is_string()) return std::optional<std::string>(it->get<std::string>());
  if (!it->is_array()) return corrupt("tokenizer_config.json: 'chat_template' is neither a string nor an array");
  for (const Json& entry : *it) {
    if (entry.is_object() && entry.contains("name") && entry["name"] == "default" && entry.contains("template") &&
        entry["template"].is_string()) {
      return std::optional<std::string>(entry["template"].get<std::string>());
    }
  }
  return corrupt("tokenizer_config.json: none of the chat templates is named 'default'");
}

bool hf_chat_templates_differ(const Checkpoint& checkpoint) {
  const std::string* file = checkpoint.document("chat_template.jinja");
  const Result<Json> config = parse_document(checkpoint, "tokenizer_config.json");
  if (file == nullptr || !config.ok()) return false;
  const auto it = config->find("chat_template");
  return it != config->end() && it->is_string() && *it != *file;
}

Result<std::vector<std::pair<std::string, std::string>>> hf_named_chat_templates(const Checkpoint& checkpoint) {
  std::vector<std::pair<std::string, std::string>> templates;
  QUIRE_ASSIGN_OR_RETURN(const Json config, parse_document(checkpoint, "tokenizer_config.json"));
  const auto list = config.find("chat_template");
  if (list == config.end() || !list->is_array()) return templates;
  for (const Json& entry : *list) {
    if (!entry.is_object() || !entry.contains("name") || !entry["name"].is_string() || !entry.contains("template") ||
        !entry["template"].is_string()) {
      return corrupt("tokenizer_config.json: an entry of 'chat_template' has no strings 'name' and 'template'");
    }
    if (entry["name"] == "default") continue;
    templates.emplace_back(entry["name"].get<std::string>(), entry["template"].get<std::string>());
  }
  return templates;
}

}  // namespace quire
