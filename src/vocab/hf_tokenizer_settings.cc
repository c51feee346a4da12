#include "vocab/hf_tokenizer_settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "json/json_value.h"

namespace quire {
namespace {

constexpr std::array<std::string_view, 7> kUsualNames = {"bos_token", "eos_token", "unk_token", "sep_token",
                                                         "pad_token", "cls_token", "mask_token"};
constexpr const char* kConfigFile = "tokenizer_config.json";
constexpr const char* kMapFile = "special_tokens_map.json";
constexpr const char* kAddedFile = "added_tokens.json";
constexpr const char* kExtraKey = "extra_special_tokens";
constexpr const char* kOlderKey = "additional_special_tokens";  // counts where there is no kExtraKey

// An empty object where the checkpoint has no such file.
Result<JsonValue> parse_document(const Checkpoint& checkpoint, const char* name) {
  const std::string* text = checkpoint.document(name);
  if (text == nullptr) return JsonValue{JsonValue::Object()};
  Result<JsonValue> document = JsonValue::parse(*text);
  if (!document.ok()) return corrupt(std::string(name) + ": " + document.status().message());
  if (document->as<JsonValue::Object>() == nullptr) return corrupt(std::string(name) + " is not a JSON object");
  return document;
}

const std::string* content_of(const JsonValue& value) {
  const JsonValue* content = value.find("content");
  return content != nullptr ? content->as<std::string>() : nullptr;
}

bool is_text(const JsonValue& value) { return value.as<std::string>() != nullptr; }
bool is_token(const JsonValue& value) { return is_text(value) || content_of(value) != nullptr; }

bool is_empty(const JsonValue& value) {
  if (const auto* members = value.as<JsonValue::Object>()) return members->empty();
  if (const auto* elements = value.as<JsonValue::Array>()) return elements->empty();
  return value.is_null();
}

enum class Special : uint8_t { kAsStated, kAlways };

// A text, which is special, or an object with its content and flags.
Result<AddedToken> read_token(const JsonValue& value, const std::string& where, Special special = Special::kAsStated) {
  AddedToken token;
  token.special = true;
  if (const auto* text = value.as<std::string>()) {
    token.text = *text;
    return token;
  }
  const std::string* content = content_of(value);
  if (content == nullptr) return corrupt(where + " is neither a text nor an object with its content");
  token.text = *content;
  const auto flag = [&](const char* name, bool otherwise, bool* out) -> Status {
    *out = otherwise;
    const JsonValue* found = value.find(name);
    if (found == nullptr) return {};
    const bool* given = found->as<bool>();
    if (given == nullptr) return corrupt(where + ": '" + name + "' is not true or false");
    *out = *given;
    return {};
  };
  QUIRE_RETURN_IF_ERROR(flag("special", false, &token.special));
  token.special = token.special || special == Special::kAlways;
  QUIRE_RETURN_IF_ERROR(flag("normalized", !token.special, &token.normalized));
  QUIRE_RETURN_IF_ERROR(flag("lstrip", false, &token.lstrip));
  QUIRE_RETURN_IF_ERROR(flag("rstrip", false, &token.rstrip));
  QUIRE_RETURN_IF_ERROR(flag("single_word", false, &token.single_word));
  return token;
}

bool is_usual(std::string_view name) { return std::ranges::find(kUsualNames, name) != kUsualNames.end(); }

// "image_token" and the like.
bool is_named_token(const JsonMember& member) {
  return member.key.ends_with("_token") && !is_usual(member.key) && is_token(member.value);
}

// Tokens by name, in the order in which the names first came. A later token takes the place of an earlier one.
class Names {
 public:
  struct Entry {
    HfNamedToken named;
    bool unset = false;  // its value is null
  };

  void put(Entry entry) {
    const auto [at, added] = places_.try_emplace(entry.named.name, entries_.size());
    if (added) entries_.emplace_back();
    entries_[at->second] = std::move(entry);
  }

  Status read(const JsonMember& member, const std::string& file, Special special = Special::kAsStated) {
    const auto& [name, value] = member;
    Entry entry{{name, {}, is_text(value)}, value.is_null()};
    if (!entry.unset) {
      QUIRE_ASSIGN_OR_RETURN(entry.named.token, read_token(value, file + ": '" + name + "'", special));
    }
    put(std::move(entry));
    return {};
  }

  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
  std::map<std::string, size_t> places_;  // into entries_
};

// `tokens` is a list or null.
Result<std::vector<HfNamedToken>> read_list(const JsonValue& tokens, const std::string& where,
                                            Special special = Special::kAsStated) {
  std::vector<HfNamedToken> list;
  if (tokens.is_null()) return list;
  const auto* elements = tokens.as<JsonValue::Array>();
  if (elements == nullptr) return corrupt(where + " is neither an object nor an array");
  for (const JsonValue& each : *elements) {
    QUIRE_ASSIGN_OR_RETURN(AddedToken token, read_token(each, where, special));
    list.push_back({"", std::move(token), is_text(each)});
  }
  return list;
}

class Reader {
 public:
  explicit Reader(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

  Result<HfTokenizerSettings> read() {
    QUIRE_ASSIGN_OR_RETURN(const JsonValue model, parse_document(checkpoint_, "config.json"));
    QUIRE_ASSIGN_OR_RETURN(const JsonValue config, parse_document(checkpoint_, kConfigFile));
    out_.model_type = text_of(model, "model_type");
    out_.tokenizer_class = text_of(config, "tokenizer_class");
    if (out_.tokenizer_class.empty()) out_.tokenizer_class = text_of(model, "tokenizer_class");
    for (const auto& [key, flag] : {std::pair{"add_bos_token", &out_.adds_bos},
                                    {"add_eos_token", &out_.adds_eos},
                                    {"legacy", &out_.legacy},
                                    {"add_prefix_space", &out_.add_prefix_space}}) {
      const JsonValue* found = config.find(key);
      if (found != nullptr && found->as<bool>() != nullptr) *flag = *found->as<bool>();
    }
    QUIRE_RETURN_IF_ERROR(read_config(config));
    const JsonValue* decoder = config.find("added_tokens_decoder");
    out_.has_decoder = decoder != nullptr && !decoder->is_null();
    if (out_.has_decoder) {
      set_names();
      QUIRE_RETURN_IF_ERROR(add_decoder(*decoder));
    } else {
      QUIRE_ASSIGN_OR_RETURN(const JsonValue map, parse_document(checkpoint_, kMapFile));
      QUIRE_RETURN_IF_ERROR(read_map(*map.as<JsonValue::Object>()));
      set_names();
      QUIRE_RETURN_IF_ERROR(add_file());
    }
    return std::move(out_);
  }

 private:
  using List = std::optional<std::vector<HfNamedToken>>;  // none: no such key

  static std::string text_of(const JsonValue& object, const char* key) {
    const JsonValue* found = object.find(key);
    const auto* text = found != nullptr ? found->as<std::string>() : nullptr;
    return text != nullptr ? *text : std::string();
  }

  Status read_config(const JsonValue& config) {
    for (const JsonMember& member : *config.as<JsonValue::Object>()) {
      if (is_usual(member.key)) QUIRE_RETURN_IF_ERROR(usual_.read(member, kConfigFile));
      if (is_named_token(member)) QUIRE_RETURN_IF_ERROR(named_.read(member, kConfigFile));
    }
    const char* key = kExtraKey;
    const JsonValue* extra = config.find(kExtraKey);
    const JsonValue* older = config.find(kOlderKey);
    if (older != nullptr && (extra == nullptr || is_empty(*extra))) {
      key = kOlderKey;
      extra = std::exchange(older, nullptr);
    }
    if (extra != nullptr) QUIRE_RETURN_IF_ERROR(read_extra(*extra, std::string(kConfigFile) + ": '" + key + "'"));
    if (older == nullptr) return {};
    QUIRE_ASSIGN_OR_RETURN(older_extra_, read_list(*older, std::string(kConfigFile) + ": '" + kOlderKey + "'"));
    return {};
  }

  // An object names its tokens, a list does not.
  Status read_extra(const JsonValue& extra, const std::string& where) {
    if (const auto* members = extra.as<JsonValue::Object>()) {
      for (const JsonMember& member : *members) QUIRE_RETURN_IF_ERROR(named_.read(member, where));
      extra_.reset();
      return {};
    }
    QUIRE_ASSIGN_OR_RETURN(extra_, read_list(extra, where));
    return {};
  }

  // A usual name of this file replaces one of tokenizer_config.json; any other name gives way to it.
  Status read_map(const JsonValue::Object& map) {
    for (const JsonMember& member : map) {
      const std::string where = std::string(kMapFile) + ": '" + member.key + "'";
      if (is_usual(member.key)) {
        QUIRE_RETURN_IF_ERROR(usual_.read(member, kMapFile, Special::kAlways));
      } else if (member.key == kExtraKey && member.value.as<JsonValue::Array>() != nullptr) {
        QUIRE_ASSIGN_OR_RETURN(std::vector<HfNamedToken> list, read_list(member.value, where, Special::kAlways));
        if (!extra_) extra_.emplace();
        std::ranges::move(list, std::back_inserter(*extra_));
      } else if (member.key == kExtraKey) {
        QUIRE_RETURN_IF_ERROR(read_extra(member.value, where));
      } else if (member.key == kOlderKey) {
        QUIRE_ASSIGN_OR_RETURN(older_extra_, read_list(member.value, where));
      } else if (is_named_token(member)) {
        QUIRE_RETURN_IF_ERROR(map_named_.read(member, kMapFile, Special::kAlways));
      }
    }
    return {};
  }

  void set_names() {
    for (const Names::Entry& entry : named_.entries()) map_named_.put(entry);
    for (const Names* names : {&usual_, &map_named_}) {
      for (const Names::Entry& entry : names->entries()) {
        if (entry.unset) {
          out_.unset.push_back(entry.named.name);
        } else {
          out_.named.push_back(entry.named);
        }
      }
    }
    const auto rank = [](const HfNamedToken& each) { return std::ranges::find(kUsualNames, each.name); };
    std::ranges::stable_sort(out_.named, {}, rank);
    out_.has_extra = extra_.has_value();
    if (List& extra = extra_ ? extra_ : older_extra_) out_.extra = *std::move(extra);
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

  Status add_decoder(const JsonValue& decoder) {
    const std::string where = std::string(kConfigFile) + ": 'added_tokens_decoder'";
    const auto* members = decoder.as<JsonValue::Object>();
    if (members == nullptr) return corrupt(where + " is not an object");
    std::map<int32_t, AddedToken> by_id;
    for (const auto& [key, value] : *members) {
      QUIRE_ASSIGN_OR_RETURN(const int32_t id, to_id(key, where));
      if (value.as<JsonValue::Object>() == nullptr) return corrupt(where + ": token " + key + " is not an object");
      QUIRE_ASSIGN_OR_RETURN(by_id[id], read_token(value, where + ": token " + key));
    }
    set_listed(std::move(by_id));
    return {};
  }

  // {"<text>": id}; special where another file names the text.
  Status add_file() {
    QUIRE_ASSIGN_OR_RETURN(const JsonValue added, parse_document(checkpoint_, kAddedFile));
    std::set<std::string_view> named;
    for (const auto* list : {&out_.named, &out_.extra}) {
      for (const HfNamedToken& each : *list) named.insert(each.token.text);
    }
    std::map<int32_t, AddedToken> by_id;
    for (const auto& [text, value] : *added.as<JsonValue::Object>()) {
      const auto* number = value.as<int64_t>();
      QUIRE_ASSIGN_OR_RETURN(const int32_t id, to_id(number != nullptr ? std::to_string(*number) : "?", kAddedFile));
      AddedToken token;
      token.text = text;
      token.special = named.contains(text);
      token.normalized = !token.special;
      by_id[id] = std::move(token);
    }
    set_listed(std::move(by_id));
    return {};
  }

  const Checkpoint& checkpoint_;
  Names usual_;              // of both files
  Names named_, map_named_;  // other names, of tokenizer_config.json and of special_tokens_map.json
  List extra_, older_extra_;
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
