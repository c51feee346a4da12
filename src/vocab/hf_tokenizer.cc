#include "vocab/hf_tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

#include "unicode/utf8.h"
#include "vocab/hf_added_tokens.h"
#include "vocab/hf_tokenizer_class.h"
#include "vocab/hf_tokenizer_json.h"
#include "vocab/hf_tokenizer_reader.h"
#include "vocab/hf_tokenizer_settings.h"
#include "vocab/sentencepiece_model.h"

namespace quire {
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581

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

// vocab.json and merges.txt as the model of a tokenizer.json, which has one reader.
Result<std::string> as_tokenizer_json(const std::string& vocab, std::string_view merges) {
  std::string text = R"({"model":{"type":"BPE","merges":[)";
  bool first = true;
  for (size_t at = 0; at < merges.size();) {
    const size_t end = std::min(merges.find('\n', at), merges.size());
    std::string_view line = merges.substr(at, end - at);
    at = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with("#version")) continue;
    if (line.find(' ') == std::string_view::npos) {
      return corrupt("merges.txt: '" + std::string(line.substr(0, 40)) + "' is no pair of tokens");
    }
    if (!is_valid_utf8(line)) return corrupt("merges.txt: is not UTF-8");
    text += (std::exchange(first, false) ? "" : ",") + nlohmann::json(line).dump();
  }
  return text + R"(],"vocab":)" + vocab + "}}";
}

class Builder {
 public:
  explicit Builder(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

  Result<TokenizerSpec> build() {
    QUIRE_ASSIGN_OR_RETURN(settings_, read_hf_tokenizer_settings(checkpoint_));
    if (const std::string* text = checkpoint_.document("tokenizer.json")) {
      QUIRE_RETURN_IF_ERROR(from_json(*text));
    } else if (const std::string* model = checkpoint_.document("tokenizer.model")) {
      QUIRE_RETURN_IF_ERROR(from_sentencepiece(*model));
    } else if (const std::string* vocab = checkpoint_.document("vocab.json")) {
      QUIRE_RETURN_IF_ERROR(from_lists(*vocab));
    } else {
      return not_found("the checkpoint has no tokenizer.json, tokenizer.model or vocab.json with merges.txt");
    }
    if (const int32_t end = id_of_name("eos_token"); end >= 0) spec_.end_of_generation_ids.push_back(end);
    spec_.bos_id = id_of_name("bos_token");
    if (hf_chat_templates_differ(checkpoint_)) {
      spec_.remarks.push_back(
          "chat_template.jinja is used, and not the chat_template of tokenizer_config.json, which differs");
    }
    return std::move(spec_);
  }

  // The special tokens by their names, without the work of build().
  Result<std::vector<HfNamedToken>> names() {
    QUIRE_ASSIGN_OR_RETURN(settings_, read_hf_tokenizer_settings(checkpoint_));
    const std::string* text = checkpoint_.document("tokenizer.json");
    bool byte_level = text == nullptr && checkpoint_.document("tokenizer.model") == nullptr;
    if (text != nullptr && settings_.tokenizer_class.starts_with("LlamaTokenizer")) {
      QUIRE_ASSIGN_OR_RETURN(const HfTokenizerParts parts, read_hf_tokenizer(*text));
      QUIRE_ASSIGN_OR_RETURN(const HfTokenizerJson json, HfTokenizerJson::parse(parts.rest));
      byte_level = json.is_byte_level();
    }
    class_ = resolve_hf_tokenizer_class(settings_, byte_level, &spec_.remarks);
    if (text == nullptr && !byte_level) {
      QUIRE_ASSIGN_OR_RETURN(const SentencepieceModel model,
                             read_sentencepiece_model(*checkpoint_.document("tokenizer.model")));
      add_piece_names(model);
    }
    return hf_named_tokens(class_, settings_);
  }

 private:
  int32_t id_of_name(std::string_view name) const {
    const auto found = std::ranges::find(named_, name, &HfNamedToken::name);
    return found != named_.end() ? found->token.id : -1;
  }

  // Vocabulary and added tokens; `own` are those of the file with the vocabulary.
  Status add_tokens(const HfTokenizerParts& parts, const std::vector<AddedToken>& own) {
    QUIRE_ASSIGN_OR_RETURN(
        HfAddedTokens added,
        merge_hf_added_tokens({.tokenizer_class = class_, .settings = &settings_, .parts = &parts, .own = &own},
                              &spec_.remarks));
    spec_.added_tokens = std::move(added.tokens);
    named_ = std::move(added.named);
    QUIRE_RETURN_IF_ERROR(build_vocabulary(parts, &spec_));
    return read_merges(parts, &spec_);
  }

  Status from_json(const std::string& text) {
    QUIRE_ASSIGN_OR_RETURN(const HfTokenizerParts parts, read_hf_tokenizer(text));
    QUIRE_ASSIGN_OR_RETURN(const HfTokenizerJson json, HfTokenizerJson::parse(parts.rest));
    class_ = resolve_hf_tokenizer_class(settings_, json.is_byte_level(), &spec_.remarks);
    QUIRE_RETURN_IF_ERROR(json.check_model());
    QUIRE_ASSIGN_OR_RETURN(const std::vector<AddedToken> own, json.added_tokens());
    QUIRE_RETURN_IF_ERROR(add_tokens(parts, own));
    QUIRE_RETURN_IF_ERROR(json.read_steps(&spec_));
    QUIRE_RETURN_IF_ERROR(json.read_model(&spec_));
    if (class_ != HfTokenizerClass::kBackend && apply_class()) {
      spec_.remarks.push_back("tokenizer.json splits text in another way than " + std::string(hf_class_name(class_)) +
                              ", which reads it; the class is followed, as in transformers 5");
    }
    QUIRE_ASSIGN_OR_RETURN(const bool surrounds, json.read_post_processor(&spec_));
    note_flags(surrounds);
    return {};
  }

  bool apply_class() {
    const bool changed = apply_hf_class(class_, settings_, &spec_);
    if (class_ == HfTokenizerClass::kGemma) spec_.unknown_id = id_of_name("unk_token");
    return changed;
  }

  // With a tokenizer.json transformers goes by its post-processor alone.
  void note_flags(bool surrounds) {
    for (const auto& [flag, ids, name] : {std::tuple(settings_.adds_bos, &spec_.prefix_ids, "bos"),
                                          std::tuple(settings_.adds_eos, &spec_.suffix_ids, "eos")}) {
      if (!flag || *flag == !ids->empty()) continue;
      if (*flag && id_of_name(std::string(name) + "_token") < 0) continue;
      spec_.remarks.push_back("tokenizer_config.json: add_" + std::string(name) + "_token is " +
                              (*flag ? "true" : "false") + ", but tokenizer.json " +
                              (surrounds ? "says otherwise" : "has no post-processor") + ", which is what counts");
    }
  }

  // Without a tokenizer.json the flags say what stands around a text.
  void apply_flags() {
    const int32_t bos = id_of_name("bos_token"), eos = id_of_name("eos_token");
    if (settings_.adds_bos.value_or(false) && bos >= 0) spec_.prefix_ids.push_back(bos);
    if (settings_.adds_eos.value_or(false) && eos >= 0) spec_.suffix_ids.push_back(eos);
  }

  Status from_lists(const std::string& vocab) {
    const std::string* merges = checkpoint_.document("merges.txt");
    if (merges == nullptr) return not_found("the checkpoint has a vocab.json, but no merges.txt beside it");
    class_ = resolve_hf_tokenizer_class(settings_, true, &spec_.remarks);
    if (class_ != HfTokenizerClass::kQwen2 && class_ != HfTokenizerClass::kGpt2) {
      return unsupported(
          "vocab.json and merges.txt do not say how text is split, and tokenizer_config.json names no tokenizer_class "
          "that does; quire knows GPT2Tokenizer and Qwen2Tokenizer");
    }
    QUIRE_ASSIGN_OR_RETURN(const std::string text, as_tokenizer_json(vocab, *merges));
    Result<HfTokenizerParts> parts = read_hf_tokenizer(text);
    if (!parts.ok())
      return {parts.status().code(), "vocab.json and merges.txt, read as one: " + parts.status().message()};
    QUIRE_RETURN_IF_ERROR(add_tokens(*parts, {}));
    apply_class();
    apply_flags();
    return {};
  }

  Status from_sentencepiece(const std::string& bytes) {
    QUIRE_ASSIGN_OR_RETURN(SentencepieceModel model, read_sentencepiece_model(bytes));
    if (!model.is_bpe) return unsupported("tokenizer.model: is not a BPE model, and quire knows no other kind");
    if (!model.character_map.empty()) {
      return unsupported("tokenizer.model: normalizes characters by a table, which quire does not support");
    }
    class_ = resolve_hf_tokenizer_class(settings_, false, &spec_.remarks);
    if (class_ == HfTokenizerClass::kQwen2 || class_ == HfTokenizerClass::kGpt2) {
      return unsupported("tokenizer.model: " + std::string(hf_class_name(class_)) + " does not read such files");
    }
    const bool as_it_is = class_ == HfTokenizerClass::kBackend;
    if (as_it_is && model.removes_extra_spaces) {
      return unsupported("tokenizer.model: removes extra spaces, which quire does not support");
    }
    if (as_it_is) rename_pieces(&model);
    add_piece_names(model);
    QUIRE_RETURN_IF_ERROR(
        add_tokens(sentencepiece_parts(model, as_it_is ? PieceOrder::kByScore : PieceOrder::kById), {}));
    if (as_it_is) {
      follow_model(model);
    } else {
      apply_class();
    }
    apply_flags();
    return {};
  }

  // Pieces that only keep a place bear the names that added_tokens_decoder gives their ids, unless another piece has it.
  void rename_pieces(SentencepieceModel* model) {
    for (AddedToken& token : settings_.listed) token.normalized = token.normalized && !model->adds_dummy_prefix;
    if (!settings_.has_decoder) return;
    std::unordered_set<std::string> kept;  // texts of pieces that are not renamed
    size_t next = 0;                       // of the list, which is in the order of ids
    for (size_t id = 0; id < model->pieces.size(); ++id) {
      const bool named = next < settings_.listed.size() && static_cast<size_t>(settings_.listed[next].id) == id;
      if (named) {
        ++next;
      } else {
        kept.insert(model->pieces[id].text);
      }
    }
    for (const AddedToken& token : settings_.listed) {
      const auto id = static_cast<size_t>(token.id);
      if (id < model->pieces.size() && !kept.contains(token.text)) model->pieces[id].text = token.text;
    }
  }

  // Control pieces are special tokens, and what users of SentencePiece defined is found before all else, unless
  // tokenizer_config.json has a list of its own. The model names the first three of the usual tokens.
  void add_piece_names(const SentencepieceModel& model) {
    using Type = SentencepieceModel::Type;
    const bool as_it_is = class_ == HfTokenizerClass::kBackend;
    if (as_it_is) {
      for (const auto& [name, id, piece] : {std::tuple("bos_token", model.bos_id, &model.bos_piece),
                                            std::tuple("eos_token", model.eos_id, &model.eos_piece),
                                            std::tuple("unk_token", model.unknown_id, &model.unknown_piece)}) {
        if (settings_.states(name) || id < 0) continue;
        HfNamedToken token{name, {}, /*plain=*/true};
        token.token.text = *piece;
        token.token.special = true;
        settings_.named.push_back(std::move(token));
      }
    }
    if (settings_.has_extra) return;
    settings_.extra.clear();
    for (const SentencepieceModel::Piece& piece : model.pieces) {
      if (piece.type != Type::kControl && (as_it_is || piece.type != Type::kUserDefined)) continue;
      HfNamedToken token;
      token.token.text = piece.text;
      token.token.special = piece.type == Type::kControl;
      settings_.extra.push_back(std::move(token));
    }
  }

  // Text is split as the model's own settings say.
  void follow_model(const SentencepieceModel& model) {
    const bool legacy = settings_.legacy.value_or(true);
    if (model.adds_dummy_prefix && legacy) {
      spec_.normalizer.push_back({NormalizerStep::Kind::kPrepend, "", std::string(kSpaceMark)});
    }
    if (model.escapes_spaces) {
      spec_.normalizer.push_back({NormalizerStep::Kind::kReplace, " ", std::string(kSpaceMark)});
    }
    if (model.adds_dummy_prefix && !legacy) {
      PreTokenizerStep step;
      step.kind = PreTokenizerStep::Kind::kMetaspace;
      step.pattern = kSpaceMark;
      step.prepend = PrependScheme::kFirst;
      step.split = false;
      spec_.pre_tokenizer.push_back(step);
    }
    add_defined_pieces(model);
    spec_.byte_fallback = model.byte_fallback;
    spec_.fuse_unknown = true;
    spec_.unknown_id = spec_.vocabulary.find(model.unknown_piece);
    spec_.decoder = DecoderKind::kPieces;
    spec_.strips_leading_space = model.adds_dummy_prefix;
  }

  // What users defined is cut out of the normalized text, the longest first, and taken whole.
  void add_defined_pieces(const SentencepieceModel& model) {
    std::vector<std::string_view> defined;
    for (const SentencepieceModel::Piece& piece : model.pieces) {
      if (piece.type == SentencepieceModel::Type::kUserDefined) defined.push_back(piece.text);
    }
    if (defined.empty()) return;
    std::ranges::stable_sort(defined, std::greater(), &std::string_view::size);
    PreTokenizerStep step;
    for (const std::string_view text : defined) {
      if (!step.pattern.empty()) step.pattern += '|';
      for (const char c : text) {
        if (std::string_view("\\^$.|?*+()[]{}-#&~ ").find(c) != std::string_view::npos) step.pattern += '\\';
        step.pattern += c;
      }
    }
    spec_.pre_tokenizer.push_back(std::move(step));
    spec_.ignore_merges = true;
  }

  const Checkpoint& checkpoint_;
  HfTokenizerSettings settings_;
  HfTokenizerClass class_ = HfTokenizerClass::kBackend;
  std::vector<HfNamedToken> named_;
  TokenizerSpec spec_;
};

}  // namespace

Result<TokenizerSpec> hf_tokenizer_spec(const Checkpoint& checkpoint) { return Builder(checkpoint).build(); }

Result<std::vector<std::pair<std::string, std::string>>> hf_special_token_texts(const Checkpoint& checkpoint) {
  QUIRE_ASSIGN_OR_RETURN(std::vector<HfNamedToken> named, Builder(checkpoint).names());
  std::vector<std::pair<std::string, std::string>> texts;
  for (HfNamedToken& each : named) texts.emplace_back(std::move(each.name), std::move(each.token.text));
  return texts;
}

}  // namespace quire
