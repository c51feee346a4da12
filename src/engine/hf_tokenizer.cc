#include "engine/hf_tokenizer.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "engine/hf_tokenizer_reader.h"
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

Status read_added_tokens(const Json& document, TokenizerSpec* spec) {
  const auto list = document.find("added_tokens");
  if (list == document.end() || list->is_null()) return {};
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
    spec->added_tokens.push_back(std::move(token));
  }
  return {};
}

// Tokens in the order of their ids; ids that nothing names are holes.
Status build_vocabulary(const HfTokenizerParts& parts, TokenizerSpec* spec) {
  size_t size = 0, bytes = parts.tokens.bytes();
  for (const int32_t id : parts.ids) size = std::max(size, static_cast<size_t>(id) + 1);
  for (const AddedToken& token : spec->added_tokens) {
    size = std::max(size, static_cast<size_t>(token.id) + 1);
    bytes += token.text.size();
  }
  constexpr uint32_t kHole = 0xFFFFFFFFu;
  std::vector<uint32_t> source(size, kHole);  // index in parts.tokens, or after those in added_tokens
  for (size_t i = 0; i < parts.ids.size(); ++i) {
    uint32_t& slot = source[static_cast<size_t>(parts.ids[i])];
    if (slot != kHole) {
      return corrupt("tokenizer.json: the tokens '" + std::string(parts.tokens[slot]) + "' and '" +
                     std::string(parts.tokens[i]) + "' share the id " + std::to_string(parts.ids[i]));
    }
    slot = static_cast<uint32_t>(i);
  }
  for (size_t i = 0; i < spec->added_tokens.size(); ++i) {
    const AddedToken& token = spec->added_tokens[i];
    uint32_t& slot = source[static_cast<size_t>(token.id)];
    const std::string_view there = slot == kHole                ? std::string_view(token.text)
                                   : slot < parts.tokens.size() ? parts.tokens[slot]
                                                                : spec->added_tokens[slot - parts.tokens.size()].text;
    if (there != token.text) {
      return corrupt("tokenizer.json: added token " + std::to_string(token.id) + " is '" + token.text +
                     "' but the vocabulary has '" + std::string(there) + "' there");
    }
    if (slot == kHole) slot = static_cast<uint32_t>(parts.tokens.size() + i);
  }
  spec->vocabulary.reserve(size, bytes);
  for (const uint32_t slot : source) {
    if (slot < parts.tokens.size()) {
      QUIRE_RETURN_IF_ERROR(spec->vocabulary.add(parts.tokens[slot]));
    } else {
      const std::string_view text =
          slot == kHole ? std::string_view() : spec->added_tokens[slot - parts.tokens.size()].text;
      QUIRE_RETURN_IF_ERROR(spec->vocabulary.add(text, Vocabulary::Lookup::kHidden));
    }
  }
  return {};
}

// The id of a token by its text, in the vocabulary or among the added tokens. -1: none.
int32_t id_of(const TokenizerSpec& spec, std::string_view text) {
  for (const AddedToken& token : spec.added_tokens) {
    if (token.text == text) return token.id;
  }
  return spec.vocabulary.find(text);
}

Status read_merges(const HfTokenizerParts& parts, TokenizerSpec* spec) {
  spec->merges.reserve(parts.merge_parts.size() / 2);
  for (size_t i = 0; i + 1 < parts.merge_parts.size(); i += 2) {
    const Merge merge{spec->vocabulary.find(parts.merge_parts[i]), spec->vocabulary.find(parts.merge_parts[i + 1])};
    if (merge.left < 0 || merge.right < 0) {
      return corrupt("tokenizer.json: merge " + std::to_string(i / 2) + " joins what is no token: '" +
                     std::string(parts.merge_parts[i]) + "' and '" + std::string(parts.merge_parts[i + 1]) + "'");
    }
    spec->merges.push_back(merge);
  }
  return {};
}

Status read_model(const Json& document, const HfTokenizerParts& parts, TokenizerSpec* spec) {
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
  QUIRE_ASSIGN_OR_RETURN(spec->byte_fallback, bool_member(*model, "byte_fallback", false, "model"));
  QUIRE_ASSIGN_OR_RETURN(spec->fuse_unknown, bool_member(*model, "fuse_unk", false, "model"));
  QUIRE_ASSIGN_OR_RETURN(spec->ignore_merges, bool_member(*model, "ignore_merges", false, "model"));
  QUIRE_RETURN_IF_ERROR(build_vocabulary(parts, spec));
  QUIRE_RETURN_IF_ERROR(read_merges(parts, spec));
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

Status read_post_processor(const Json& document, bool* has_template, TokenizerSpec* spec) {
  QUIRE_ASSIGN_OR_RETURN(const auto list, components(document, "post_processor", "processors"));
  for (const Json* component : list) {
    QUIRE_ASSIGN_OR_RETURN(const std::string type, text_member(*component, "type", "post_processor"));
    if (type == "ByteLevel") continue;  // adjusts offsets only
    if (type != "TemplateProcessing") return unknown_kind("post-processor", type);
    QUIRE_RETURN_IF_ERROR(read_template(*component, spec));
    *has_template = true;
  }
  return {};
}

Result<Json> parse_document(const Checkpoint& checkpoint, const char* name) {
  const std::string* text = checkpoint.document(name);
  if (text == nullptr) return Json::object();
  Json document = Json::parse(*text, nullptr, false);
  if (!document.is_object()) return corrupt(std::string(name) + " is not a JSON object");
  return document;
}

// A special token of tokenizer_config.json: a string, or an object with its content.
std::optional<std::string> token_text(const Json& config, const std::string& name) {
  const auto it = config.find(name);
  if (it == config.end()) return std::nullopt;
  if (it->is_string()) return it->get<std::string>();
  if (it->is_object() && it->contains("content") && (*it)["content"].is_string()) {
    return (*it)["content"].get<std::string>();
  }
  return std::nullopt;
}

// Which of BOS and EOS `add_special` adds: transformers' classes for SentencePiece-born tokenizers rebuild the template
// from two flags; the others use tokenizer.json's, unless there is none and the flags ask for tokens.
Status apply_config(const Json& config, bool has_template, TokenizerSpec* spec) {
  const std::optional<std::string> bos = token_text(config, "bos_token");
  const std::optional<std::string> eos = token_text(config, "eos_token");
  if (bos) spec->bos_id = id_of(*spec, *bos);
  const int32_t eos_id = eos ? id_of(*spec, *eos) : -1;
  if (eos_id >= 0) spec->end_of_generation_ids.push_back(eos_id);

  std::string kind;
  if (const auto it = config.find("tokenizer_class"); it != config.end() && it->is_string())
    kind = it->get<std::string>();
  constexpr std::array<std::string_view, 4> kRebuilders = {"LlamaTokenizer", "CodeLlamaTokenizer", "GemmaTokenizer",
                                                           "CohereTokenizer"};
  const bool rebuilds = std::any_of(kRebuilders.begin(), kRebuilders.end(), [&kind](std::string_view name) {
    return kind == name || kind == std::string(name) + "Fast";
  });
  if (!rebuilds && has_template) return {};
  QUIRE_ASSIGN_OR_RETURN(const bool adds_bos, bool_member(config, "add_bos_token", rebuilds, "tokenizer_config.json"));
  QUIRE_ASSIGN_OR_RETURN(const bool adds_eos, bool_member(config, "add_eos_token", false, "tokenizer_config.json"));
  spec->prefix_ids.clear();
  spec->suffix_ids.clear();
  if (adds_bos && spec->bos_id >= 0) spec->prefix_ids.push_back(spec->bos_id);
  if (adds_eos && eos_id >= 0) spec->suffix_ids.push_back(eos_id);
  return {};
}

}  // namespace

Result<TokenizerSpec> hf_tokenizer_spec(const Checkpoint& checkpoint) {
  const std::string* text = checkpoint.document("tokenizer.json");
  if (text == nullptr) return not_found("the checkpoint has no tokenizer.json");
  QUIRE_ASSIGN_OR_RETURN(const HfTokenizerParts parts, read_hf_tokenizer(*text));
  const Json document = Json::parse(parts.rest, nullptr, false);
  QUIRE_ASSIGN_OR_RETURN(const Json config, parse_document(checkpoint, "tokenizer_config.json"));
  TokenizerSpec spec;
  QUIRE_RETURN_IF_ERROR(read_added_tokens(document, &spec));
  QUIRE_RETURN_IF_ERROR(read_model(document, parts, &spec));
  QUIRE_RETURN_IF_ERROR(read_normalizer(document, &spec));
  QUIRE_RETURN_IF_ERROR(read_pre_tokenizer(document, &spec));
  QUIRE_RETURN_IF_ERROR(read_decoder(document, &spec));
  bool has_template = false;
  QUIRE_RETURN_IF_ERROR(read_post_processor(document, &has_template, &spec));
  QUIRE_RETURN_IF_ERROR(apply_config(config, has_template, &spec));
  return spec;
}

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

Result<std::vector<std::pair<std::string, std::string>>> hf_special_token_texts(const Checkpoint& checkpoint) {
  QUIRE_ASSIGN_OR_RETURN(const Json config, parse_document(checkpoint, "tokenizer_config.json"));
  QUIRE_ASSIGN_OR_RETURN(const Json map, parse_document(checkpoint, "special_tokens_map.json"));
  std::vector<std::pair<std::string, std::string>> texts;
  for (const char* name :
       {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}) {
    std::optional<std::string> text = token_text(config, name);
    if (!text) text = token_text(map, name);
    if (text) texts.emplace_back(name, std::move(*text));
  }
  return texts;
}

}  // namespace quire
