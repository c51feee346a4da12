#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/check.h"
#include "text/splitter.h"
#include "unicode/utf8.h"
#include "vocab/gguf_tokenizer.h"
#include "vocab/piece_merges.h"
#include "vocab/tokenizer_export.h"
#include "vocab/tokenizer_forms.h"
#include "vocab/tokenizer_source.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581

using Specials = std::vector<std::pair<std::string, int32_t>>;

std::string token_name(int32_t id, std::string_view text) {
  return "token " + std::to_string(id) + " ('" + std::string(text) + "')";
}

// What tokenizer.json's vocabulary, a JSON object by text, cannot hold.
Status check_texts(const Vocabulary& vocabulary) {
  std::unordered_map<std::string_view, int32_t> seen;
  seen.reserve(static_cast<size_t>(vocabulary.size()));
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    const std::string_view text = vocabulary.text(id);
    if (text.empty()) continue;
    if (!is_valid_utf8(text)) {
      return unsupported("tokenizer.ggml.tokens: token " + std::to_string(id) +
                         " is not UTF-8, which a tokenizer.json must be");
    }
    const auto [other, is_new] = seen.emplace(text, id);
    if (!is_new) {
      return unsupported("tokenizer.ggml.tokens: " + token_name(id, text) + " has the text of token " +
                         std::to_string(other->second) + "; in a tokenizer.json texts are distinct");
    }
  }
  return {};
}

// GGUF keeps control tokens apart from the rest; in tokenizer.json they stand in the vocabulary, since tokens outside it get
// their ids by counting. So no control token may be what the model makes of ordinary text.
Status check_control_tokens(const TokenizerSpec& spec) {
  for (const AddedToken& token : spec.added_tokens) {
    if (!token.special) continue;
    if (!spec.byte_level && token.text.size() == utf8_length(token.text[0])) {
      return unsupported("tokenizer.ggml.tokens: the control " + token_name(token.id, token.text) +
                         " is one character, which a tokenizer.json would find in ordinary text too");
    }
  }
  if (!spec.byte_level) return check_dropped_characters(spec, "tokenizer.ggml.tokens");
  return check_control_pieces(spec, "tokenizer.ggml.tokens");
}

Json normalizer_json(const std::vector<NormalizerStep>& steps) {
  Json list = Json::array();
  for (const NormalizerStep& step : steps) {
    switch (step.kind) {
      case NormalizerStep::Kind::kNfc:
        list.push_back({{"type", "NFC"}});
        break;
      case NormalizerStep::Kind::kPrepend:
        list.push_back({{"type", "Prepend"}, {"prepend", step.content}});
        break;
      case NormalizerStep::Kind::kReplace:
        list.push_back({{"type", "Replace"}, {"pattern", {{"String", step.pattern}}}, {"content", step.content}});
        break;
    }
  }
  if (list.empty()) return nullptr;
  if (list.size() == 1) return list[0];
  return {{"type", "Sequence"}, {"normalizers", std::move(list)}};
}

Json byte_level_json(bool prefix, bool splits) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", prefix}, {"trim_offsets", true}, {"use_regex", splits}};
}

// The steps that names of tokenizer.ggml.pre stand for: patterns, and digits one by one.
Json pre_tokenizer_json(const TokenizerSpec& spec) {
  if (!spec.byte_level) return nullptr;
  std::vector<PreTokenizerStep> steps = spec.pre_tokenizer;
  const bool gpt2_last = !steps.empty() && steps.back().pattern == kGpt2Pattern;
  if (gpt2_last) steps.pop_back();
  Json list = Json::array();
  for (const PreTokenizerStep& step : steps) {
    QUIRE_CHECK(step.behavior == SplitBehavior::kIsolated && !step.invert);
    if (step.kind == PreTokenizerStep::Kind::kDigits) {
      list.push_back({{"type", "Digits"}, {"individual_digits", true}});
    } else {
      QUIRE_CHECK(step.kind == PreTokenizerStep::Kind::kRegex);
      list.push_back({{"type", "Split"},
                      {"pattern", {{"Regex", spelled_out(step.pattern)}}},
                      {"behavior", "Isolated"},
                      {"invert", false}});
    }
  }
  list.push_back(byte_level_json(false, gpt2_last));
  if (list.size() == 1) return list[0];
  return {{"type", "Sequence"}, {"pretokenizers", std::move(list)}};
}

Json decoder_json(const TokenizerSpec& spec) {
  if (spec.decoder == DecoderKind::kByteLevel) return byte_level_json(true, true);
  Json list = {{{"type", "Replace"}, {"pattern", {{"String", kSpaceMark}}}, {"content", " "}},
               {{"type", "ByteFallback"}},
               {{"type", "Fuse"}}};
  if (spec.strips_leading_space) list.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  return {{"type", "Sequence"}, {"decoders", std::move(list)}};
}

// What stands before and after each text of a single one or a pair.
Json post_processor_json(const TokenizerSpec& spec) {
  if (spec.prefix_ids.empty() && spec.suffix_ids.empty()) return nullptr;
  Json tokens = Json::object();
  const auto special = [&](int32_t id, int type) -> Json {
    const std::string text(spec.vocabulary.text(id));
    tokens[text] = {{"id", text}, {"ids", {id}}, {"tokens", {text}}};
    return {{"SpecialToken", {{"id", text}, {"type_id", type}}}};
  };
  const auto sequence = [&](const char* name, int type) {
    Json list = Json::array();
    for (const int32_t id : spec.prefix_ids) list.push_back(special(id, type));
    list.push_back({{"Sequence", {{"id", name}, {"type_id", type}}}});
    for (const int32_t id : spec.suffix_ids) list.push_back(special(id, type));
    return list;
  };
  const Json single = sequence("A", 0);
  Json pair = single;
  for (Json& part : sequence("B", 1)) pair.push_back(std::move(part));
  return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", tokens}};
}

Json added_tokens_json(const TokenizerSpec& spec) {
  Json list = Json::array();
  for (const AddedToken& token : spec.added_tokens) {
    list.push_back({{"id", token.id},
                    {"content", token.text},
                    {"single_word", token.single_word},
                    {"lstrip", token.lstrip},
                    {"rstrip", token.rstrip},
                    {"normalized", token.normalized},
                    {"special", token.special}});
  }
  return list;
}

std::string quoted(std::string_view text) { return Json(text).dump(); }

// Written piece by piece: a JSON library's object of 10^5 members is slow to fill and large.
std::string model_text(const TokenizerSpec& spec) {
  const Vocabulary& vocabulary = spec.vocabulary;
  Json head = {{"type", "BPE"}, {"dropout", nullptr}, {"unk_token", nullptr}};
  if (spec.unknown_id >= 0) head["unk_token"] = vocabulary.text(spec.unknown_id);
  head["continuing_subword_prefix"] = nullptr;
  head["end_of_word_suffix"] = nullptr;
  head["fuse_unk"] = spec.fuse_unknown;
  head["byte_fallback"] = spec.byte_fallback;
  head["ignore_merges"] = spec.ignore_merges;
  std::string text = head.dump();
  text.pop_back();
  text += R"(,"vocab":{)";
  const char* separator = "";
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.text(id).empty()) continue;
    text += separator + quoted(vocabulary.text(id)) + ":" + std::to_string(id);
    separator = ",";
  }
  text += R"(},"merges":[)";
  separator = "";
  for (const Merge& merge : spec.merges) {
    text += separator;
    text += "[" + quoted(vocabulary.text(merge.left)) + "," + quoted(vocabulary.text(merge.right)) + "]";
    separator = ",";
  }
  return text + "]}";
}

std::string tokenizer_text(const TokenizerSpec& spec) {
  const Json document = {{"version", "1.0"},
                         {"truncation", nullptr},
                         {"padding", nullptr},
                         {"added_tokens", added_tokens_json(spec)},
                         {"normalizer", normalizer_json(spec.normalizer)},
                         {"pre_tokenizer", pre_tokenizer_json(spec)},
                         {"post_processor", post_processor_json(spec)},
                         {"decoder", decoder_json(spec)}};
  std::string text = document.dump();
  text.pop_back();
  return text + R"(,"model":)" + model_text(spec) + "}\n";
}

// A string, or a list by name where the file has several.
Result<Json> chat_templates_json(const Checkpoint& gguf) {
  QUIRE_ASSIGN_OR_RETURN(const std::optional<std::string> main, gguf_chat_template(gguf));
  QUIRE_ASSIGN_OR_RETURN(const auto others, gguf_named_chat_templates(gguf));
  if (others.empty()) return main ? Json(*main) : Json();
  Json list = Json::array();
  if (main) list.push_back({{"name", "default"}, {"template", *main}});
  for (const auto& [name, source] : others) list.push_back({{"name", name}, {"template", source}});
  return list;
}

// The ids that programs look for beside the tokenizer.
Result<Json> generation_config_json(const Specials& specials, const TokenizerSpec& spec) {
  Json config = Json::object();
  if (spec.bos_id >= 0) config["bos_token_id"] = spec.bos_id;
  std::vector<int32_t> ends;
  for (const int32_t id : spec.end_of_generation_ids) {
    if (id < 0 || id >= spec.vocabulary.size()) {
      return corrupt("token " + std::to_string(id) + ", which ends a generation, is outside tokenizer.ggml.tokens");
    }
    if (std::find(ends.begin(), ends.end(), id) == ends.end()) ends.push_back(id);
  }
  if (ends.size() == 1) config["eos_token_id"] = ends[0];
  if (ends.size() > 1) config["eos_token_id"] = ends;
  for (const auto& [name, id] : specials) {
    if (name == "pad_token") config["pad_token_id"] = id;
  }
  return config;
}

// Special tokens by the names of tokenizer_config.json.
Result<Json> special_tokens_json(const Specials& specials, const TokenizerSpec& spec) {
  Json map = Json::object();
  for (const auto& [name, id] : specials) {
    // A token with a name is found in text. The unknown token need not have one: the model of tokenizer.json names it.
    const bool added = std::ranges::find(spec.added_tokens, id, &AddedToken::id) != spec.added_tokens.end();
    if (name == "unk_token" && !added) continue;
    const std::string_view text = spec.vocabulary.text(id);
    if (text.empty()) {
      return unsupported("tokenizer.ggml." + std::string(gguf_special_key(name)) + " names token " +
                         std::to_string(id) + ", which tokenizer.ggml.token_type says is unused");
    }
    map[name] = text;
  }
  return map;
}

Result<std::map<std::string, std::string>> documents(const Checkpoint& gguf, TokenizerSpec spec) {
  QUIRE_RETURN_IF_ERROR(check_texts(spec.vocabulary));
  QUIRE_RETURN_IF_ERROR(check_control_tokens(spec));
  if (spec.model == ModelKind::kScores) {
    QUIRE_ASSIGN_OR_RETURN(spec.merges, merges_from_scores(spec));
  }
  QUIRE_ASSIGN_OR_RETURN(const Specials specials, gguf_special_token_ids(gguf));
  QUIRE_ASSIGN_OR_RETURN(const Json special_map, special_tokens_json(specials, spec));
  Json config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                 {"clean_up_tokenization_spaces", false},
                 {"add_bos_token", !spec.prefix_ids.empty()},
                 {"add_eos_token", !spec.suffix_ids.empty()}};
  config.update(special_map);
  QUIRE_ASSIGN_OR_RETURN(Json chat_template, chat_templates_json(gguf));
  if (!chat_template.is_null()) config["chat_template"] = std::move(chat_template);
  QUIRE_ASSIGN_OR_RETURN(const Json generation, generation_config_json(specials, spec));
  return std::map<std::string, std::string>{{"tokenizer.json", tokenizer_text(spec)},
                                            {"tokenizer_config.json", config.dump(2) + "\n"},
                                            {"special_tokens_map.json", special_map.dump(2) + "\n"},
                                            {"generation_config.json", generation.dump(2) + "\n"}};
}

}  // namespace

Result<std::map<std::string, std::string>> hf_tokenizer_documents(const Checkpoint& gguf) {
  if (!gguf.format().starts_with("GGUF")) return invalid_argument(gguf.path() + " is not a GGUF file");
  QUIRE_ASSIGN_OR_RETURN(TokenizerSpec spec, checked_tokenizer_spec(gguf));
  try {
    auto result = documents(gguf, std::move(spec));
    if (!result.ok()) return Status(result.status().code(), gguf.path() + ": " + result.status().message());
    return result;
  } catch (const Json::exception& e) {
    return corrupt(gguf.path() + ": a text among the keys tokenizer.* is not UTF-8: " + e.what());
  }
}

}  // namespace quire
