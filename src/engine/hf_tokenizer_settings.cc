#include "engine/hf_tokenizer_settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 7> kUsualNames = {"bos_token", "eos_token", "unk_token", "sep_token",
                                                         "pad_token", "cls_token", "mask_token"};
constexpr const char* kConfigFile = "tokenizer_config.json";
constexpr const char* kMapFile = "special_tokens_map.json";
constexpr const char* kAddedFile = "added_tokens.json";

// An empty object where the checkpoint has no such file.
Result<Json> parse_document(const Checkpoint& checkpoint, const char* name) {
  const std::string* text = checkpoint.document(name);
  if (text == nullptr) return Json::object();
  Json document = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object()) return corrupt(std::string(name) + " is not a JSON object");
  return document;
}

bool is_token(const Json& value) {
  return value.is_string() || (value.is_object() && value.contains("content") && value["content"].is_string());
}

// A text, or an object with its content and flags. Special unless it says otherwise.
Result<AddedToken> read_token(const Json& value, const std::string& where) {
  AddedToken token;
  token.special = true;
  if (value.is_string()) {
    token.text = value.get<std::string>();
    return token;
  }
  if (!is_token(value)) return corrupt(where + " is neither a text nor an object with its content");
  token.text = value["content"].get<std::string>();
  const auto flag = [&](const char* name, bool otherwise, bool* out) -> Status {
    *out = otherwise;
    const auto found = value.find(name);
    if (found == value.end()) return {};
    if (!found->is_boolean()) return corrupt(where + ": '" + name + "' is not true or false");
    *out = found->get<bool>();
    return {};
  };
  QUIRE_RETURN_IF_ERROR(flag("special", false, &token.special));
  QUIRE_RETURN_IF_ERROR(flag("normalized", !token.special, &token.normalized));
  QUIRE_RETURN_IF_ERROR(flag("lstrip", false, &token.lstrip));
  QUIRE_RETURN_IF_ERROR(flag("rstrip", false, &token.rstrip));
  QUIRE_RETURN_IF_ERROR(flag("single_word", false, &token.single_word));
  return token;
}

bool is_usual(std::string_view name) { return std::ranges::find(kUsualNames, name) != kUsualNames.end(); }

class Reader {
 public:
  explicit Reader(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

  Result<HfTokenizerSettings> read() {
    QUIRE_ASSIGN_OR_RETURN(const Json model, parse_document(checkpoint_, "config.json"));
    QUIRE_ASSIGN_OR_RETURN(const Json config, parse_document(checkpoint_, kConfigFile));
    out_.model_type = text_of(model, "model_type");
    out_.tokenizer_class = text_of(config, "tokenizer_class");
    if (out_.tokenizer_class.empty()) out_.tokenizer_class = text_of(model, "tokenizer_class");
    for (const auto& [key, flag] : {std::pair{"add_bos_token", &out_.adds_bos},
                                    {"add_eos_token", &out_.adds_eos},
                                    {"legacy", &out_.legacy},
                                    {"add_prefix_space", &out_.add_prefix_space}}) {
      const auto found = config.find(key);
      if (found != config.end() && found->is_boolean()) *flag = found->get<bool>();
    }
    QUIRE_RETURN_IF_ERROR(add_names(config, kConfigFile));
    const auto decoder = config.find("added_tokens_decoder");
    out_.has_decoder = decoder != config.end() && !decoder->is_null();
    if (out_.has_decoder) {
      QUIRE_RETURN_IF_ERROR(add_decoder(*decoder));
    } else {
      QUIRE_ASSIGN_OR_RETURN(const Json map, parse_document(checkpoint_, kMapFile));
      QUIRE_RETURN_IF_ERROR(add_names(map, kMapFile));
      QUIRE_RETURN_IF_ERROR(add_file());
    }
    order_names();
    return std::move(out_);
  }

 private:
  static std::string text_of(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
  }

  // A later file replaces what an earlier one says.
  Status set_name(const std::string& name, const Json& value, const std::string& file) {
    std::erase_if(out_.named, [&](const HfNamedToken& each) { return each.name == name; });
    std::erase(out_.unset, name);
    if (value.is_null()) {
      out_.unset.push_back(name);
      return {};
    }
    QUIRE_ASSIGN_OR_RETURN(AddedToken token, read_token(value, file + ": '" + name + "'"));
    out_.named.push_back({name, std::move(token), value.is_string()});
    return {};
  }

  Status add_names(const Json& object, const std::string& file) {
    for (const auto& [key, value] : object.items()) {
      const bool named = key.ends_with("_token") && key != "extra_special_tokens";
      if (is_usual(key) || (named && is_token(value))) QUIRE_RETURN_IF_ERROR(set_name(key, value, file));
    }
    // The older key counts where the newer has no list.
    for (const char* key : {"extra_special_tokens", "additional_special_tokens"}) {
      const auto found = object.find(key);
      if (found == object.end() || found->is_null() || found->empty()) continue;
      QUIRE_RETURN_IF_ERROR(add_extra(*found, file + ": '" + key + "'"));
      if (found->is_array()) break;
    }
    const auto extra = object.find("extra_special_tokens");
    const bool named = extra != object.end() && extra->is_object() && !extra->empty();
    const bool lists = extra != object.end() || object.contains("additional_special_tokens");
    out_.has_extra = out_.has_extra || (lists && !named);
    return {};
  }

  Status add_extra(const Json& value, const std::string& where) {
    if (value.is_object()) {
      for (const auto& [name, token] : value.items()) QUIRE_RETURN_IF_ERROR(set_name(name, token, where));
      return {};
    }
    if (!value.is_array()) return corrupt(where + " is neither an object nor an array");
    out_.extra.clear();
    for (const Json& each : value) {
      QUIRE_ASSIGN_OR_RETURN(AddedToken token, read_token(each, where));
      out_.extra.push_back({"", std::move(token), each.is_string()});
    }
    return {};
  }

  static Result<int32_t> to_id(const std::string& text, const std::string& file) {
    int32_t id = -1;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), id);
    if (end.ec == std::errc() && end.ptr == text.data() + text.size() && id >= 0 && id < Vocabulary::kMaxSize)
      return id;
    return corrupt(file + " gives a token the id '" + text.substr(0, 40) + "', which is not within 0.." +
                   std::to_string(Vocabulary::kMaxSize - 1));
  }

  void set_listed(std::map<int32_t, AddedToken>&& by_id) {
    for (auto& [id, token] : by_id) {
      token.id = id;
      out_.listed.push_back(std::move(token));
    }
  }

  Status add_decoder(const Json& decoder) {
    const std::string where = std::string(kConfigFile) + ": 'added_tokens_decoder'";
    if (!decoder.is_object()) return corrupt(where + " is not an object");
    std::map<int32_t, AddedToken> by_id;
    for (const auto& [key, value] : decoder.items()) {
      QUIRE_ASSIGN_OR_RETURN(const int32_t id, to_id(key, where));
      if (!value.is_object()) return corrupt(where + ": token " + key + " is not an object");
      QUIRE_ASSIGN_OR_RETURN(by_id[id], read_token(value, where + ": token " + key));
    }
    set_listed(std::move(by_id));
    return {};
  }

  // {"<text>": id}; special where another file names the text.
  Status add_file() {
    QUIRE_ASSIGN_OR_RETURN(const Json added, parse_document(checkpoint_, kAddedFile));
    std::map<int32_t, AddedToken> by_id;
    for (const auto& [text, value] : added.items()) {
      QUIRE_ASSIGN_OR_RETURN(const int32_t id, to_id(value.is_number_unsigned() ? value.dump() : "?", kAddedFile));
      AddedToken token;
      token.text = text;
      const auto names_it = [&](const HfNamedToken& each) { return each.token.text == text; };
      token.special = std::ranges::any_of(out_.named, names_it) || std::ranges::any_of(out_.extra, names_it);
      token.normalized = !token.special;
      by_id[id] = std::move(token);
    }
    set_listed(std::move(by_id));
    return {};
  }

  void order_names() {
    const auto rank = [](const HfNamedToken& each) { return std::ranges::find(kUsualNames, each.name); };
    std::ranges::stable_sort(out_.named, {}, rank);
  }

  const Checkpoint& checkpoint_;
  HfTokenizerSettings out_;
};

}  // namespace

bool HfTokenizerSettings::states(std::string_view name) const {
  return std::ranges::find(named, name, &HfNamedToken::name) != named.end() ||
         std::ranges::find(unset, name) != unset.end();
}

std::span<const std::string_view> hf_usual_token_names() { return kUsualNames; }

Result<HfTokenizerSettings> read_hf_tokenizer_settings(const Checkpoint& checkpoint) {
  return Reader(checkpoint).read();
}

}  // namespace quire
