#include "vocab/hf_tokenizer_json.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "text/splitter.h"

namespace quire {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581

Status unknown_kind(const std::string& what, const std::string& kind) {
  return unsupported("tokenizer.json: the " + what + " '" + kind + "' is not one that quire knows");
}

// Reading members, with an error that names the field instead of an exception.
Result<std::string> text_member(const Json& object, const char* name, const std::string& where) {
  const auto it = object.find(name);
  if (it == object.end() || !it->is_string()) {
    return corrupt("tokenizer.json: '" + std::string(name) + "' of the " + where + " is not a string");
  }
  return it->get<std::string>();
}

Result<bool> bool_member(const Json& object, const char* name, bool otherwise, const std::string& where) {
  const auto it = object.find(name);
  if (it == object.end() || it->is_null()) return otherwise;
  if (!it->is_boolean())
    return corrupt("tokenizer.json: '" + std::string(name) + "' of the " + where + " is not a bool");
  return it->get<bool>();
}

// The components of an optional, possibly nested Sequence, in order.
Status flatten(const Json& component, const char* list_name, const std::string& where, std::vector<const Json*>* out) {
  if (component.is_null()) return {};
  if (!component.is_object()) return corrupt("tokenizer.json: the " + where + " is not an object");
  QUIRE_ASSIGN_OR_RETURN(const std::string type, text_member(component, "type", where));
  if (type != "Sequence") {
    out->push_back(&component);
    return {};
  }
  const auto list = component.find(list_name);
  if (list == component.end() || !list->is_array()) {
    return corrupt("tokenizer.json: the " + where + "'s Sequence has no array '" + list_name + "'");
  }
  for (const Json& element : *list) QUIRE_RETURN_IF_ERROR(flatten(element, list_name, where, out));
  return {};
}

Result<std::vector<const Json*>> components(const Json& document, const char* name, const char* list_name) {
  std::vector<const Json*> list;
  const auto it = document.find(name);
  if (it != document.end()) QUIRE_RETURN_IF_ERROR(flatten(*it, list_name, name, &list));
  return list;
}

Status read_normalizer(const Json& document, TokenizerSpec* spec) {
  QUIRE_ASSIGN_OR_RETURN(const auto list, components(document, "normalizer", "normalizers"));
  for (const Json* component : list) {
    QUIRE_ASSIGN_OR_RETURN(const std::string type, text_member(*component, "type", "normalizer"));
    NormalizerStep step;
    if (type == "NFC") {
      step.kind = NormalizerStep::Kind::kNfc;
    } else if (type == "Prepend") {
      step.kind = NormalizerStep::Kind::kPrepend;
      QUIRE_ASSIGN_OR_RETURN(step.content, text_member(*component, "prepend", "normalizer"));
    } else if (type == "Replace") {
      step.kind = NormalizerStep::Kind::kReplace;
      const auto pattern = component->find("pattern");
      if (pattern == component->end() || !pattern->is_object() || !pattern->contains("String")) {
        return unsupported("tokenizer.json: a Replace normalizer whose pattern is not a 'String' is not supported");
      }
      QUIRE_ASSIGN_OR_RETURN(step.pattern, text_member(*pattern, "String", "normalizer"));
      QUIRE_ASSIGN_OR_RETURN(step.content, text_member(*component, "content", "normalizer"));
    } else {
      return unknown_kind("normalizer", type);
    }
    spec->normalizer.push_back(std::move(step));
  }
  return {};
}

Result<SplitBehavior> behavior_member(const Json& component, const char* otherwise) {
  const auto it = component.find("behavior");
  const std::string name = it == component.end() ? otherwise : it->is_string() ? it->get<std::string>() : it->dump();
  // Some files spell the names in lower case, as the Python binding takes them.
  constexpr std::array<std::pair<std::string_view, SplitBehavior>, 10> kNames = {{
      {"Removed", SplitBehavior::kRemoved},
      {"Isolated", SplitBehavior::kIsolated},
      {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
      {"MergedWithNext", SplitBehavior::kMergedWithNext},
      {"Contiguous", SplitBehavior::kContiguous},
      {"removed", SplitBehavior::kRemoved},
      {"isolated", SplitBehavior::kIsolated},
      {"merged_with_previous", SplitBehavior::kMergedWithPrevious},
      {"merged_with_next", SplitBehavior::kMergedWithNext},
      {"contiguous", SplitBehavior::kContiguous},
  }};
  for (const auto& [spelling, behavior] : kNames) {
    if (name == spelling) return behavior;
  }
  return unknown_kind("split behavior", name);
}

Status read_split(const Json& component, PreTokenizerStep* step) {
  const auto pattern = component.find("pattern");
  if (pattern == component.end() || !pattern->is_object()) {
    return corrupt("tokenizer.json: a Split pre-tokenizer has no pattern");
  }
  const bool literal = pattern->contains("String");
  step->kind = literal ? PreTokenizerStep::Kind::kLiteral : PreTokenizerStep::Kind::kRegex;
  QUIRE_ASSIGN_OR_RETURN(step->pattern, text_member(*pattern, literal ? "String" : "Regex", "pre_tokenizer"));
  QUIRE_ASSIGN_OR_RETURN(step->behavior, behavior_member(component, ""));
  QUIRE_ASSIGN_OR_RETURN(step->invert, bool_member(component, "invert", false, "pre_tokenizer"));
  return {};
}

Status read_metaspace(const Json& component, PreTokenizerStep* step) {
  step->kind = PreTokenizerStep::Kind::kMetaspace;
  QUIRE_ASSIGN_OR_RETURN(step->pattern, text_member(component, "replacement", "pre_tokenizer"));
  QUIRE_ASSIGN_OR_RETURN(step->split, bool_member(component, "split", true, "pre_tokenizer"));
  QUIRE_ASSIGN_OR_RETURN(const bool prefix, bool_member(component, "add_prefix_space", true, "pre_tokenizer"));
  if (!component.contains("prepend_scheme")) {
    step->prepend = prefix ? PrependScheme::kAlways : PrependScheme::kNone;
    return {};
  }
  QUIRE_ASSIGN_OR_RETURN(const std::string scheme, text_member(component, "prepend_scheme", "pre_tokenizer"));
  if (scheme == "always") {
    step->prepend = PrependScheme::kAlways;
  } else if (scheme == "first") {
    step->prepend = PrependScheme::kFirst;
  } else if (scheme == "never") {
    step->prepend = PrependScheme::kNone;
  } else {
    return unknown_kind("prepend_scheme", scheme);
  }
  return {};
}

Status read_byte_level(const Json& component, bool is_last, TokenizerSpec* spec) {
  QUIRE_ASSIGN_OR_RETURN(const bool prefix, bool_member(component, "add_prefix_space", true, "pre_tokenizer"));
  QUIRE_ASSIGN_OR_RETURN(const bool splits, bool_member(component, "use_regex", true, "pre_tokenizer"));
  PreTokenizerStep step;
  if (prefix) {
    step.kind = PreTokenizerStep::Kind::kPrefixSpace;
    spec->pre_tokenizer.push_back(step);
  }
  if (splits) {
    step.kind = PreTokenizerStep::Kind::kRegex;
    step.pattern = kGpt2Pattern;
    spec->pre_tokenizer.push_back(step);
  }
  if (is_last) {
    spec->byte_level = true;
  } else {
    step.kind = PreTokenizerStep::Kind::kByteStandIns;
    spec->pre_tokenizer.push_back(step);
  }
  return {};
}

Status read_pre_tokenizer(const Json& document, TokenizerSpec* spec) {
  QUIRE_ASSIGN_OR_RETURN(const auto list, components(document, "pre_tokenizer", "pretokenizers"));
  for (const Json* component : list) {
    QUIRE_ASSIGN_OR_RETURN(const std::string type, text_member(*component, "type", "pre_tokenizer"));
    if (type == "ByteLevel") {
      QUIRE_RETURN_IF_ERROR(read_byte_level(*component, component == list.back(), spec));
      continue;
    }
    PreTokenizerStep step;
    if (type == "Split") {
      QUIRE_RETURN_IF_ERROR(read_split(*component, &step));
    } else if (type == "Digits") {
      step.kind = PreTokenizerStep::Kind::kDigits;
      QUIRE_ASSIGN_OR_RETURN(const bool each, bool_member(*component, "individual_digits", false, "pre_tokenizer"));
      step.behavior = each ? SplitBehavior::kIsolated : SplitBehavior::kContiguous;
    } else if (type == "Punctuation") {
      step.kind = PreTokenizerStep::Kind::kPunctuation;
      QUIRE_ASSIGN_OR_RETURN(step.behavior, behavior_member(*component, "Isolated"));
    } else if (type == "Metaspace") {
      QUIRE_RETURN_IF_ERROR(read_metaspace(*component, &step));
    } else {
      return unknown_kind("pre-tokenizer", type);
    }
    spec->pre_tokenizer.push_back(std::move(step));
  }
  return {};
}

Status read_decoder(const Json& document, TokenizerSpec* spec) {
  QUIRE_ASSIGN_OR_RETURN(const auto list, components(document, "decoder", "decoders"));
  std::string chain;
  for (const Json* component : list) {
    QUIRE_ASSIGN_OR_RETURN(const std::string type, text_member(*component, "type", "decoder"));
    chain += (chain.empty() ? "" : ", ") + type;
  }
  if (chain == "ByteLevel") {
    spec->decoder = DecoderKind::kByteLevel;
    return {};
  }
  const bool strips = chain == "Replace, ByteFallback, Fuse, Strip";
  if (!strips && chain != "Replace, ByteFallback, Fuse") return unknown_kind("decoder", chain);
  const Json mark_to_space = {{"type", "Replace"}, {"pattern", {{"String", kSpaceMark}}}, {"content", " "}};
  const Json one_space = {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}};
  if (*list[0] != mark_to_space) return unknown_kind("decoder", list[0]->dump());
  if (strips && *list[3] != one_space) return unknown_kind("decoder", list[3]->dump());
  spec->decoder = DecoderKind::kPieces;
  spec->strips_leading_space = strips;
  return {};
}

Result<std::vector<AddedToken>> read_added_tokens(const Json& document) {
  std::vector<AddedToken> tokens;
  const auto list = document.find("added_tokens");
  if (list == document.end() || list->is_null()) return tokens;
  if (!list->is_array()) return corrupt("tokenizer.json: 'added_tokens' is not an array");
  for (const Json& entry : *list) {
    if (!entry.is_object() || !entry.contains("id") || !entry["id"].is_number_unsigned() ||
        entry["id"].get<uint64_t>() >= static_cast<uint64_t>(Vocabulary::kMaxSize)) {
      return corrupt("tokenizer.json: an added token has no id in 0.." + std::to_string(Vocabulary::kMaxSize - 1));
    }
    AddedToken token;
    token.id = entry["id"].get<int32_t>();
    const std::string where = "added token " + std::to_string(token.id);
    QUIRE_ASSIGN_OR_RETURN(token.text, text_member(entry, "content", where));
    QUIRE_ASSIGN_OR_RETURN(token.special, bool_member(entry, "special", false, where));
    QUIRE_ASSIGN_OR_RETURN(token.normalized, bool_member(entry, "normalized", !token.special, where));
    QUIRE_ASSIGN_OR_RETURN(token.lstrip, bool_member(entry, "lstrip", false, where));
    QUIRE_ASSIGN_OR_RETURN(token.rstrip, bool_member(entry, "rstrip", false, where));
    QUIRE_ASSIGN_OR_RETURN(token.single_word, bool_member(entry, "single_word", false, where));
    tokens.push_back(std::move(token));
  }
  return tokens;
}

// The id of a token by its text, in the vocabulary or among the added tokens. -1: none.
int32_t id_of(const TokenizerSpec& spec, std::string_view text) {
  for (const AddedToken& token : spec.added_tokens) {
    if (token.text == text) return token.id;
  }
  return spec.vocabulary.find(text);
}

Status check_model(const Json& document) {
  const auto model = document.find("model");
  if (model == document.end() || !model->is_object()) return corrupt("tokenizer.json has no object 'model'");
  // Files of the first releases leave the type out; only BPE has merges.
  if (model->contains("type") || !model->contains("merges")) {
    QUIRE_ASSIGN_OR_RETURN(const std::string type, text_member(*model, "type", "model"));
    if (type != "BPE") return unknown_kind("model", type);
  }
  for (const char* name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const auto it = model->find(name);
    if (it != model->end() && !it->is_null() && *it != "") {
      return unsupported("tokenizer.json: the model's '" + std::string(name) + "' is not supported");
    }
  }
  const auto dropout = model->find("dropout");
  if (dropout != model->end() && !dropout->is_null() && *dropout != 0.0) {
    return unsupported("tokenizer.json: the model's 'dropout' is not supported");
  }
  return {};
}

Status read_model(const Json& document, TokenizerSpec* spec) {
  QUIRE_RETURN_IF_ERROR(check_model(document));
  const auto model = document.find("model");
  QUIRE_ASSIGN_OR_RETURN(spec->byte_fallback, bool_member(*model, "byte_fallback", false, "model"));
  QUIRE_ASSIGN_OR_RETURN(spec->fuse_unknown, bool_member(*model, "fuse_unk", false, "model"));
  QUIRE_ASSIGN_OR_RETURN(spec->ignore_merges, bool_member(*model, "ignore_merges", false, "model"));
  const auto unknown = model->find("unk_token");
  if (unknown != model->end() && unknown->is_string()) {
    spec->unknown_id = id_of(*spec, unknown->get<std::string>());
    if (spec->unknown_id < 0) {
      return corrupt("tokenizer.json: the model's unk_token '" + unknown->get<std::string>() + "' is no token");
    }
  }
  return {};
}

// The ids that a TemplateProcessing puts before and after a single text.
Status read_template(const Json& component, TokenizerSpec* spec) {
  const auto single = component.find("single");
  const auto tokens = component.find("special_tokens");
  if (single == component.end() || !single->is_array() || tokens == component.end() || !tokens->is_object()) {
    return corrupt("tokenizer.json: the TemplateProcessing post-processor lacks 'single' or 'special_tokens'");
  }
  bool after_text = false;
  for (const Json& part : *single) {
    if (part.is_object() && part.contains("Sequence")) {
      after_text = true;
      continue;
    }
    if (!part.is_object() || !part.contains("SpecialToken") || !part["SpecialToken"].is_object()) {
      return corrupt("tokenizer.json: a part of the post-processor's template is neither text nor special token");
    }
    QUIRE_ASSIGN_OR_RETURN(const std::string name, text_member(part["SpecialToken"], "id", "post_processor"));
    const auto token = tokens->find(name);
    if (token == tokens->end() || !token->is_object() || !token->contains("ids") || !(*token)["ids"].is_array()) {
      return corrupt("tokenizer.json: the post-processor does not define its special token '" + name + "'");
    }
    for (const Json& id : (*token)["ids"]) {
      if (!id.is_number_unsigned() || id.get<uint64_t>() >= static_cast<uint64_t>(spec->vocabulary.size())) {
        return corrupt("tokenizer.json: the post-processor's special token '" + name +
                       "' has an id outside the vocabulary");
      }
      (after_text ? spec->suffix_ids : spec->prefix_ids).push_back(id.get<int32_t>());
    }
  }
  return {};
}

Status read_post_processor(const Json& document, TokenizerSpec* spec) {
  QUIRE_ASSIGN_OR_RETURN(const auto list, components(document, "post_processor", "processors"));
  for (const Json* component : list) {
    QUIRE_ASSIGN_OR_RETURN(const std::string type, text_member(*component, "type", "post_processor"));
    if (type == "ByteLevel") continue;  // adjusts offsets only
    if (type != "TemplateProcessing") return unknown_kind("post-processor", type);
    QUIRE_RETURN_IF_ERROR(read_template(*component, spec));
  }
  return {};
}

// Whether a component is of this type, or a Sequence that holds one.
bool holds_type(const Json& component, std::string_view type) {
  if (component.is_array()) {
    return std::ranges::any_of(component, [&](const Json& each) { return holds_type(each, type); });
  }
  if (!component.is_object()) return false;
  if (const auto it = component.find("type"); it != component.end() && *it == type) return true;
  for (const char* list : {"pretokenizers", "decoders"}) {
    if (component.contains(list) && holds_type(component[list], type)) return true;
  }
  return false;
}

}  // namespace

struct HfTokenizerJson::Document {
  Json json;
};

Result<HfTokenizerJson> HfTokenizerJson::parse(const std::string& rest) {
  Json json = Json::parse(rest, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return corrupt("tokenizer.json is not an object");
  return HfTokenizerJson(std::make_shared<const Document>(Document{std::move(json)}));
}

Result<std::vector<AddedToken>> HfTokenizerJson::added_tokens() const { return read_added_tokens(document_->json); }

bool HfTokenizerJson::is_byte_level() const {
  for (const char* part : {"pre_tokenizer", "decoder"}) {
    if (document_->json.contains(part) && holds_type(document_->json[part], "ByteLevel")) return true;
  }
  return false;
}

Status HfTokenizerJson::read_steps(TokenizerSpec* spec) const {
  QUIRE_RETURN_IF_ERROR(read_normalizer(document_->json, spec));
  QUIRE_RETURN_IF_ERROR(read_pre_tokenizer(document_->json, spec));
  return read_decoder(document_->json, spec);
}

Status HfTokenizerJson::check_model() const { return quire::check_model(document_->json); }

Status HfTokenizerJson::read_model(TokenizerSpec* spec) const { return quire::read_model(document_->json, spec); }

Result<bool> HfTokenizerJson::read_post_processor(TokenizerSpec* spec) const {
  const auto found = document_->json.find("post_processor");
  if (found == document_->json.end() || found->is_null()) return false;
  QUIRE_RETURN_IF_ERROR(quire::read_post_processor(document_->json, spec));
  return true;
}

}  // namespace quire
