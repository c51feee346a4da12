#include "vocab/hf_added_tokens.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace quire {
namespace {

// Added tokens by id, as tokenizers counts them.
class Table {
 public:
  explicit Table(const HfTokenizerParts& parts) {
    by_text_.reserve(parts.tokens.size());
    for (size_t i = 0; i < parts.tokens.size(); ++i) by_text_.emplace(parts.tokens[i], parts.ids[i]);
    vocabulary_ = static_cast<int32_t>(by_text_.size());
  }

  // The id that it has from now on.
  Result<int32_t> add(AddedToken token) {
    const auto known = ids_.find(token.text);
    if (known != ids_.end()) {
      token.id = known->second;
    } else if (const auto there = by_text_.find(token.text); there != by_text_.end()) {
      token.id = there->second;
    } else {
      token.id = std::max(vocabulary_, highest_ + 1);
    }
    if (token.id >= Vocabulary::kMaxSize) {
      return out_of_range("the added token '" + token.text + "' is one too many: ids end at " +
                          std::to_string(Vocabulary::kMaxSize - 1));
    }
    highest_ = std::max(highest_, token.id);
    ids_[token.text] = token.id;
    const int32_t id = token.id;
    by_id_[id] = std::move(token);
    return id;
  }

  bool contains(const std::string& text) const { return ids_.contains(text); }
  int32_t id_of(const std::string& text) const {
    if (const auto found = ids_.find(text); found != ids_.end()) return found->second;
    const auto found = by_text_.find(text);
    return found != by_text_.end() ? found->second : -1;
  }

  std::vector<AddedToken> take() {
    std::vector<AddedToken> tokens;
    for (auto& [id, token] : by_id_) tokens.push_back(std::move(token));
    return tokens;
  }

 private:
  std::unordered_map<std::string_view, int32_t> by_text_;  // the vocabulary's
  std::unordered_map<std::string, int32_t> ids_;
  std::map<int32_t, AddedToken> by_id_;
  int32_t vocabulary_ = 0;
  int32_t highest_ = -1;
};

// What tells two ways of naming a special token apart.
auto identity(const HfNamedToken& named) {
  const AddedToken& t = named.token;
  return std::tuple(t.text, named.plain, t.special, t.normalized, t.lstrip, t.rstrip, t.single_word);
}

// Tokens of one kind of mistake, for one remark.
class Strays {
 public:
  void add(const std::string& what) {
    if (count_ < kShown) list_ += (list_.empty() ? "" : ", ") + what;
    ++count_;
  }
  void report(const std::string& what, std::vector<std::string>* remarks) const {
    if (count_ == 0) return;
    remarks->push_back(what + ": " + list_ +
                       (count_ > kShown ? " and " + std::to_string(count_ - kShown) + " more" : ""));
  }

 private:
  static constexpr int64_t kShown = 3;

  std::string list_;
  int64_t count_ = 0;
};

class Merger {
 public:
  Merger(const HfAddedTokenInput& input, std::vector<std::string>* remarks)
      : input_(input), settings_(*input.settings), own_(*input.own), remarks_(*remarks), table_(*input.parts) {}

  Result<HfAddedTokens> merge() {
    const bool as_it_is = input_.tokenizer_class == HfTokenizerClass::kBackend;
    if (as_it_is) {
      for (const AddedToken& token : own_) QUIRE_RETURN_IF_ERROR(add(token));
    }
    choose_listed();
    choose_names();
    QUIRE_RETURN_IF_ERROR(add_chosen());
    if (input_.tokenizer_class == HfTokenizerClass::kQwen2) QUIRE_RETURN_IF_ERROR(reset_flags());
    report();
    HfAddedTokens out;
    for (HfNamedToken& each : named_) each.token.id = table_.id_of(each.token.text);
    out.named = std::move(named_);
    out.tokens = table_.take();
    return out;
  }

 private:
  Status add(const AddedToken& token) {
    QUIRE_ASSIGN_OR_RETURN(const int32_t id, table_.add(token));
    if (token.id >= 0 && token.id != id) {
      moved_.add("'" + token.text + "' is " + std::to_string(id) + ", not " + std::to_string(token.id));
    }
    return {};
  }

  // The tokens beside the vocabulary: tokenizer_config.json's, else those of the older files with tokenizer.json's.
  void choose_listed() {
    if (settings_.has_decoder) {
      chosen_ = settings_.listed;
      return;
    }
    std::map<int32_t, AddedToken> by_id;
    for (const AddedToken& token : settings_.listed) by_id[token.id] = token;
    for (const AddedToken& token : own_) by_id[token.id] = token;
    for (auto& [id, token] : by_id) chosen_.push_back(std::move(token));
  }

  // The names that count, with the flags that a list gives their texts.
  void choose_names() {
    named_ = hf_named_tokens(input_.tokenizer_class, settings_);
    std::unordered_map<std::string_view, const AddedToken*> listed;
    for (const AddedToken& token : chosen_) listed[token.text] = &token;
    for (HfNamedToken& each : named_) {
      if (const auto found = listed.find(each.token.text); found != listed.end()) each.token = *found->second;
      each.token.id = -1;
    }
  }

  Status add_chosen() {
    std::set<std::string> names, known;
    for (const HfNamedToken& each : named_) names.insert(each.token.text);
    for (const AddedToken& token : chosen_) known.insert(token.text);
    // One text may be named twice, by itself and with flags: then the later flags count.
    std::set<decltype(identity(HfNamedToken()))> taken;
    for (const std::vector<HfNamedToken>* list : {&std::as_const(named_), &settings_.extra}) {
      for (const HfNamedToken& each : *list) {
        if (table_.contains(each.token.text) || known.contains(each.token.text)) continue;
        if (!taken.insert(identity(each)).second) continue;
        chosen_.push_back(each.token);
        chosen_.back().id = -1;
      }
    }
    for (AddedToken& token : chosen_) {
      token.special = token.special || names.contains(token.text);
      QUIRE_RETURN_IF_ERROR(add(token));
    }
    return {};
  }

  // Qwen2Tokenizer adds each special token again, by its text alone.
  Status reset_flags() {
    for (const std::vector<HfNamedToken>* list : {&std::as_const(named_), &settings_.extra}) {
      for (const HfNamedToken& each : *list) {
        AddedToken plain;
        plain.id = -1;
        plain.text = each.token.text;
        plain.special = true;
        QUIRE_RETURN_IF_ERROR(add(plain));
      }
    }
    return {};
  }

  void report() {
    moved_.report("the ids of added tokens come from counting, not from the files that name them", &remarks_);
    Strays lost;
    for (const AddedToken& token : own_) {
      if (!table_.contains(token.text)) lost.add("'" + token.text + "'");
    }
    lost.report("tokenizer.json adds tokens that tokenizer_config.json's added_tokens_decoder, which " +
                    std::string(hf_class_name(input_.tokenizer_class)) + " goes by, does not list; they are text",
                &remarks_);
  }

  const HfAddedTokenInput& input_;
  const HfTokenizerSettings& settings_;
  const std::vector<AddedToken>& own_;
  std::vector<std::string>& remarks_;
  Table table_;
  std::vector<AddedToken> chosen_;
  std::vector<HfNamedToken> named_;
  Strays moved_;
};

}  // namespace

Result<HfAddedTokens> merge_hf_added_tokens(const HfAddedTokenInput& input, std::vector<std::string>* remarks) {
  return Merger(input, remarks).merge();
}

}  // namespace quire
