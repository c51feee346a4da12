#include "vocab/piece_merges.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <tuple>

#include "text/byte_alphabet.h"
#include "unicode/utf8.h"

namespace quire {
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581

// Bounds of the work below, which is a search for each place of each token, and for each user-defined token in each control
// token. Published vocabularies have tokens of 256 bytes, and some thousands of one of these kinds.
constexpr size_t kMaxPieceBytes = 1024;
constexpr size_t kMaxAddedPairs = 50'000'000;

Status check_work(const TokenizerSpec& spec, const std::string& where) {
  for (int32_t id = 0; id < spec.vocabulary.size(); ++id) {
    const size_t bytes = spec.vocabulary.text(id).size();
    if (bytes > kMaxPieceBytes) {
      return unsupported(where + " has a token of " + std::to_string(bytes) + " bytes, " + std::to_string(id) +
                         "; tokenizers with tokens of at most " + std::to_string(kMaxPieceBytes) + " are converted");
    }
  }
  const auto special = static_cast<size_t>(std::count_if(spec.added_tokens.begin(), spec.added_tokens.end(),
                                                         [](const AddedToken& token) { return token.special; }));
  const size_t others = spec.added_tokens.size() - special;
  if (special == 0 || others <= kMaxAddedPairs / special) return {};
  return unsupported(where + " has " + std::to_string(special) + " control and " + std::to_string(others) +
                     " user-defined tokens, more than are converted");
}

size_t characters(std::string_view text) {
  size_t count = 0;
  for (size_t at = 0; at < text.size(); at += utf8_length(text[at])) ++count;
  return count;
}

bool is_run_of_one_character(std::string_view text) {
  const std::string_view first = text.substr(0, utf8_length(text[0]));
  for (size_t at = 0; at < text.size(); at += first.size()) {
    if (text.substr(at, first.size()) != first) return false;
  }
  return true;
}

// Which tokens take part in merging: not control tokens, bytes or holes, nor tokens that are cut out of the text before
// the model sees it. One character is a part of others whatever its score, as merging begins with characters. A user-defined token is cut out wherever it stands, except in the spelling of a control token that
// is to be read as text, or where a space mark of its own is made later.
std::vector<bool> joinable(const TokenizerSpec& spec) {
  std::vector<bool> joins(static_cast<size_t>(spec.vocabulary.size()));
  for (int32_t id = 0; id < spec.vocabulary.size(); ++id) {
    const std::string_view text = spec.vocabulary.text(id);
    if (text.empty() || spec.vocabulary.find(text) != id) continue;
    joins[static_cast<size_t>(id)] =
        spec.model == ModelKind::kScores
            ? spec.scores[static_cast<size_t>(id)] > kNeverMerged || text.size() == utf8_length(text[0])
            : !byte_token(text);
  }
  const auto is_within_control = [&spec](std::string_view text) {
    return std::any_of(spec.added_tokens.begin(), spec.added_tokens.end(), [text](const AddedToken& token) {
      return token.special && token.text.find(text) != std::string::npos;
    });
  };
  for (const AddedToken& token : spec.added_tokens) {
    const bool stays = token.text.find(kSpaceMark) != std::string::npos || is_within_control(token.text);
    if (token.special || !stays) joins[static_cast<size_t>(token.id)] = false;
  }
  return joins;
}

// The pairs of joinable tokens whose texts make up that of `id`, in the order of their ids. The unknown token joins
// nothing, as it stands for another text than its own.
void append_splits(const TokenizerSpec& spec, const std::vector<bool>& joins, int32_t id, std::vector<Merge>* out) {
  const std::string_view text = spec.vocabulary.text(id);
  const size_t before = out->size();
  for (size_t at = utf8_length(text[0]); at < text.size(); at += utf8_length(text[at])) {
    const Merge split{spec.vocabulary.find(text.substr(0, at)), spec.vocabulary.find(text.substr(at))};
    if (split.left < 0 || split.right < 0) continue;
    if (split.left == spec.unknown_id || split.right == spec.unknown_id) continue;
    if (joins[static_cast<size_t>(split.left)] && joins[static_cast<size_t>(split.right)]) out->push_back(split);
  }
  std::sort(out->begin() + static_cast<ptrdiff_t>(before), out->end(),
            [](const Merge& a, const Merge& b) { return std::tie(a.left, a.right) < std::tie(b.left, b.right); });
}

std::string quoted(const TokenizerSpec& spec, int32_t id) { return "'" + std::string(spec.vocabulary.text(id)) + "'"; }

struct RankedMerge {
  Merge merge;
  int32_t id = 0;  // of what it makes
  float score = 0;
  uint32_t left_length = 0;  // in characters
  uint32_t right_length = 0;
};

bool goes_before(const RankedMerge& a, const RankedMerge& b) {
  return std::tie(a.score, a.left_length, a.right_length) > std::tie(b.score, b.left_length, b.right_length);
}

RankedMerge ranked(const TokenizerSpec& spec, Merge merge, int32_t id, float score) {
  return {merge, id, score, static_cast<uint32_t>(characters(spec.vocabulary.text(merge.left))),
          static_cast<uint32_t>(characters(spec.vocabulary.text(merge.right)))};
}

// Whether the texts of two tokens are runs of the same character.
bool are_like_runs(const TokenizerSpec& spec, int32_t a, int32_t b) {
  const std::string_view one = spec.vocabulary.text(a), other = spec.vocabulary.text(b);
  const size_t length = utf8_length(one[0]);
  return one.substr(0, length) == other.substr(0, length) && is_run_of_one_character(one) &&
         is_run_of_one_character(other);
}

// What each merge of a list makes, and the first and last place of each token in the list.
struct MergeList {
  std::vector<int32_t> results;
  std::vector<int32_t> first;  // by token; -1: nothing makes it
  std::vector<int32_t> last;
};

Result<MergeList> analyse(const TokenizerSpec& spec) {
  MergeList list;
  list.first.assign(static_cast<size_t>(spec.vocabulary.size()), -1);
  list.last = list.first;
  for (const Merge& merge : spec.merges) {
    const std::string text = std::string(spec.vocabulary.text(merge.left)).append(spec.vocabulary.text(merge.right));
    const int32_t id = spec.vocabulary.find(text);
    const auto at = static_cast<int32_t>(list.results.size());
    if (id < 0)
      return corrupt("tokenizer.json: entry " + std::to_string(at) + " of model.merges makes '" + text +
                     "', which is no token");
    if (list.first[static_cast<size_t>(id)] < 0) list.first[static_cast<size_t>(id)] = at;
    list.last[static_cast<size_t>(id)] = at;
    list.results.push_back(id);
  }
  return list;
}

// Pieces whose merges are mixed have one score, which says no more than "leftmost first".
Status check_mixed(const TokenizerSpec& spec, const MergeList& list, size_t begin, size_t end) {
  for (size_t i = begin + 1; i < end; ++i) {
    if (!are_like_runs(spec, list.results[i - 1], list.results[i])) {
      return unsupported("tokenizer.json: model.merges mixes the merges of " + quoted(spec, list.results[i - 1]) +
                         " and " + quoted(spec, list.results[i]) + " (entry " + std::to_string(i) +
                         "); GGUF has one score for each token, which cannot say so");
    }
    if (goes_before(ranked(spec, spec.merges[i], 0, 0), ranked(spec, spec.merges[i - 1], 0, 0))) {
      return unsupported("tokenizer.json: entry " + std::to_string(i) + " of model.merges, which makes " +
                         quoted(spec, list.results[i]) + ", has a longer left part than the one before it; GGUF's " +
                         "scores join the leftmost first");
    }
  }
  return {};
}

// Control and byte tokens have no score that lets a pair join.
Status check_results(const TokenizerSpec& spec, const MergeList& list) {
  std::vector<bool> special(static_cast<size_t>(spec.vocabulary.size()));
  for (const AddedToken& token : spec.added_tokens) special[static_cast<size_t>(token.id)] = token.special;
  for (size_t i = 0; i < list.results.size(); ++i) {
    for (const int32_t id : {list.results[i], spec.merges[i].left, spec.merges[i].right}) {
      const bool is_unknown_part = id == spec.unknown_id && id != list.results[i];
      if (!special[static_cast<size_t>(id)] && !byte_token(spec.vocabulary.text(id)) && !is_unknown_part) continue;
      return unsupported("tokenizer.json: entry " + std::to_string(i) + " of model.merges uses " + quoted(spec, id) +
                         ", which is a control, byte or unknown token; in GGUF those never join");
    }
  }
  return {};
}

// Scores let every pair join whose text is a token, so the list must have them all.
Status check_complete(const TokenizerSpec& spec, const MergeList& list) {
  std::vector<uint64_t> listed;
  const auto key = [](const Merge& m) { return static_cast<uint64_t>(m.left) << 32 | static_cast<uint32_t>(m.right); };
  for (const Merge& merge : spec.merges) listed.push_back(key(merge));
  std::sort(listed.begin(), listed.end());
  const std::vector<bool> joins = joinable(spec);
  const auto arises = [&](int32_t id) {
    const std::string_view text = spec.vocabulary.text(id);
    return list.first[static_cast<size_t>(id)] >= 0 || text.size() == utf8_length(text[0]);
  };
  std::vector<Merge> splits;
  for (int32_t id = 0; id < spec.vocabulary.size(); ++id) {
    if (!joins[static_cast<size_t>(id)]) continue;
    splits.clear();
    append_splits(spec, joins, id, &splits);
    for (const Merge& split : splits) {
      if (!arises(split.left) || !arises(split.right)) continue;
      if (std::binary_search(listed.begin(), listed.end(), key(split))) continue;
      return unsupported("tokenizer.json: model.merges does not join " + quoted(spec, split.left) + " and " +
                         quoted(spec, split.right) + ", though " + quoted(spec, id) +
                         " is a token; GGUF's scores would join them");
    }
  }
  return {};
}

}  // namespace

Result<std::vector<Merge>> merges_from_scores(const TokenizerSpec& spec) {
  QUIRE_RETURN_IF_ERROR(check_work(spec, "tokenizer.ggml.tokens"));
  const std::vector<bool> joins = joinable(spec);
  std::vector<RankedMerge> all;
  std::vector<Merge> splits;
  for (int32_t id = 0; id < spec.vocabulary.size(); ++id) {
    if (!joins[static_cast<size_t>(id)]) continue;
    const float score = spec.scores[static_cast<size_t>(id)];
    splits.clear();
    append_splits(spec, joins, id, &splits);
    for (const Merge& split : splits) all.push_back(ranked(spec, split, id, score));
  }
  std::stable_sort(all.begin(), all.end(), goes_before);
  std::vector<Merge> merges;
  merges.reserve(all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    if (i > 0 && all[i].score == all[i - 1].score && all[i].id != all[i - 1].id &&
        !are_like_runs(spec, all[i].id, all[i - 1].id)) {
      return unsupported("tokenizer.ggml.scores gives the tokens " + quoted(spec, all[i - 1].id) + " and " +
                         quoted(spec, all[i].id) + " one score; the merges of a tokenizer.json need an order");
    }
    merges.push_back(all[i].merge);
  }
  return merges;
}

Result<std::vector<float>> scores_from_merges(const TokenizerSpec& spec) {
  QUIRE_RETURN_IF_ERROR(check_work(spec, "tokenizer.json"));
  QUIRE_ASSIGN_OR_RETURN(const MergeList list, analyse(spec));
  QUIRE_RETURN_IF_ERROR(check_results(spec, list));
  QUIRE_RETURN_IF_ERROR(check_complete(spec, list));
  constexpr float kNone = 1;
  std::vector<float> scores(static_cast<size_t>(spec.vocabulary.size()), kNone);
  float next = 0;
  // A group: from the first merge of a token to the last merge of every token that occurs on the way.
  for (size_t begin = 0; begin < list.results.size();) {
    size_t end = begin + 1;
    for (size_t i = begin; i < end; ++i) {
      const auto id = static_cast<size_t>(list.results[i]);
      end = std::max(end, static_cast<size_t>(list.last[id]) + 1);
      scores[id] = next;
    }
    const bool mixed = std::any_of(list.results.begin() + static_cast<ptrdiff_t>(begin),
                                   list.results.begin() + static_cast<ptrdiff_t>(end),
                                   [&](int32_t id) { return id != list.results[begin]; });
    if (mixed) QUIRE_RETURN_IF_ERROR(check_mixed(spec, list, begin, end));
    next -= 1;
    begin = end;
  }
  for (const AddedToken& token : spec.added_tokens) {
    if (token.special) scores[static_cast<size_t>(token.id)] = 0;
  }
  for (int32_t id = 0; id < spec.vocabulary.size(); ++id) {
    float& score = scores[static_cast<size_t>(id)];
    const std::string_view text = spec.vocabulary.text(id);
    if (score == kNone) score = text.empty() || byte_token(text) || id == spec.unknown_id ? 0 : next--;
  }
  return scores;
}

}  // namespace quire
