#include "text/tokenizer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/byte_alphabet.h"
#include "text/detokenizer.h"
#include "text/normalizer.h"
#include "text/piece_cache.h"
#include "text/pre_tokenizer.h"
#include "unicode/unicode.h"
#include "unicode/utf8.h"

namespace quire {
namespace {

constexpr size_t kMaxTextBytes = size_t{256} << 20;
constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581

using Decision = AddedTokenFinder::Decision;

Status check_ids(const std::vector<int32_t>& ids, std::string_view what, int32_t size) {
  for (const int32_t id : ids) {
    if (id < 0 || id >= size) {
      return corrupt("the tokenizer's " + std::string(what) + " id " + std::to_string(id) +
                     " is outside its vocabulary of " + std::to_string(size) + " tokens");
    }
  }
  return {};
}

Status check_spec(const TokenizerSpec& spec) {
  const int32_t size = spec.vocabulary.size();
  if (size == 0) return corrupt("the tokenizer has no tokens");
  QUIRE_RETURN_IF_ERROR(check_ids(spec.prefix_ids, "prefix", size));
  QUIRE_RETURN_IF_ERROR(check_ids(spec.suffix_ids, "suffix", size));
  if (spec.bos_id != -1) QUIRE_RETURN_IF_ERROR(check_ids({spec.bos_id}, "BOS", size));
  if (spec.unknown_id != -1) QUIRE_RETURN_IF_ERROR(check_ids({spec.unknown_id}, "unknown-token", size));
  for (const AddedToken& token : spec.added_tokens) {
    QUIRE_RETURN_IF_ERROR(check_ids({token.id}, "added-token", size));
  }
  return {};
}

// A stretch of a text that one author wrote.
struct AuthoredRange {
  TextRange range;
  Author author = Author::kTemplate;
};
using AuthoredRanges = std::vector<AuthoredRange>;

// What each author wrote of a chat; neighbouring spans of one author are one range.
AuthoredRanges authored_ranges(const MarkedText& text) {
  AuthoredRanges ranges;
  for (const MarkedText::Span& span : text.spans) {
    if (span.begin >= span.end) continue;
    if (!ranges.empty() && ranges.back().author == span.author) {
      ranges.back().range.end = span.end;
    } else {
      ranges.push_back({{span.begin, span.end}, span.author});
    }
  }
  return ranges;
}

// The first range that ends behind `at`.
AuthoredRanges::const_iterator range_behind(const AuthoredRanges& ranges, size_t at) {
  return std::upper_bound(ranges.begin(), ranges.end(), at,
                          [](size_t position, const AuthoredRange& r) { return position < r.range.end; });
}

constexpr size_t kChunkBytes = size_t{64} << 10;

// is_valid_utf8(), or false when the work is stopped half-way.
bool is_valid(std::string_view text, WorkMeter* meter) {
  while (text.size() > kChunkBytes) {
    // A continuation byte begins no character, and a character has three at most.
    size_t cut = kChunkBytes;
    while (cut > kChunkBytes - 3 && (text[cut] & 0xC0) == 0x80) --cut;
    if (meter->spent(cut) || !is_valid_utf8(text.substr(0, cut))) return false;
    text.remove_prefix(cut);
  }
  return is_valid_utf8(text);
}

// repair_utf8(), or less when the work is stopped half-way.
std::string repair(std::string_view text, WorkMeter* meter) {
  Utf8Repair repair;
  std::string out;
  for (; text.size() > kChunkBytes && !meter->spent(kChunkBytes); text.remove_prefix(kChunkBytes)) {
    out += repair.push(text.substr(0, kChunkBytes));
  }
  if (meter->stopped()) return out;
  out += repair.push(text);
  return out + repair.finish();
}

// The same chat in valid UTF-8, each span by itself.
MarkedText repair_marked(const MarkedText& text, WorkMeter* meter) {
  MarkedText repaired;
  for (const MarkedText::Span& span : text.spans) {
    const size_t begin = repaired.text.size();
    repaired.text += repair(std::string_view(text.text).substr(span.begin, span.end - span.begin), meter);
    repaired.spans.push_back({begin, repaired.text.size(), span.author});
  }
  return repaired;
}

// Runs of spaces and line ends, which many vocabularies have as added tokens: layout, not marks.
bool is_blank(std::string_view text) {
  for (size_t at = 0; at < text.size(); at += utf8_length(text[at])) {
    const bool mark = text.substr(at).starts_with(kSpaceMark);
    if (!mark && (char_bits(utf8_decode(text.data() + at)) & kSpace) == 0) return false;
  }
  return true;
}

// Whether a token that is spelled at `match` counts, given who wrote what. A spelling that does not count must not hide
// one that does, a shorter one at its place or one that begins within it.
Decision decide_in_chat(const AuthoredRanges& ranges, const AddedTokenFinder::Entry& entry, TextRange match) {
  const bool special = entry.token.special;
  const auto hand = range_behind(ranges, match.begin);
  const bool one_hand = hand != ranges.end() && match.end <= hand->range.end;
  if (one_hand && hand->author == Author::kTemplate) return Decision::kTake;
  if (one_hand && hand->author == Author::kModel && !special) return Decision::kTake;
  return !special && is_blank(entry.pattern) ? Decision::kTake : Decision::kRetry;
}

}  // namespace

struct Tokenizer::Parts {
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  BpeModel model;
  AddedTokenFinder raw;         // looked for in the text as given
  AddedTokenFinder normalized;  // looked for in normalized text
};

// One call of encode.
class Tokenizer::Encoder {
 public:
  // `ranges`: who wrote what of a chat; null: the text is no chat, and `special` says what special tokens in it are.
  Encoder(const Tokenizer& tokenizer, const AuthoredRanges* ranges, Decision special, const WorkBudget* budget)
      : parts_(*tokenizer.parts_), ranges_(ranges), special_(special), meter_(budget) {
    workspace_.meter = &meter_;
  }

  Status run(std::string_view text, std::vector<int32_t>* out) {
    out_ = out;
    cache_ = PieceCache(text.size());
    for (const auto& segment : parts_.raw.find(text, decider(ranges_), &meter_)) {
      if (segment.id >= 0) {
        out->push_back(segment.id);
      } else {
        QUIRE_RETURN_IF_ERROR(encode_plain(text, segment.range));
      }
    }
    return meter_.why();
  }

 private:
  AddedTokenFinder::Decide decider(const AuthoredRanges* ranges) const {
    if (ranges != nullptr) {
      return [ranges](const AddedTokenFinder::Entry& entry, TextRange match) {
        return decide_in_chat(*ranges, entry, match);
      };
    }
    return [special = special_](const AddedTokenFinder::Entry& entry, TextRange) {
      return entry.token.special ? special : Decision::kTake;
    };
  }

  Status encode_plain(std::string_view text, TextRange range) {
    const bool at_start = range.begin == 0;
    AuthoredRanges normalized_ranges;
    std::string_view normalized;
    if (ranges_ != nullptr && !parts_.normalized.empty()) {
      normalized_ranges = normalize_by_author(text, range);
      normalized = authored_;
    } else {
      normalized = parts_.normalizer.apply(text.substr(range.begin, range.end - range.begin), &normalized_, &meter_);
    }
    if (meter_.stopped()) return meter_.why();
    if (parts_.normalized.empty()) return encode_normalized(normalized, at_start);
    const auto decide = decider(ranges_ == nullptr ? nullptr : &normalized_ranges);
    for (const auto& segment : parts_.normalized.find(normalized, decide, &meter_)) {
      if (segment.id >= 0) {
        out_->push_back(segment.id);
      } else {
        const std::string_view part = normalized.substr(segment.range.begin, segment.range.end - segment.range.begin);
        QUIRE_RETURN_IF_ERROR(encode_normalized(part, at_start && segment.range.begin == 0));
      }
    }
    return meter_.why();
  }

  // Normalizes each author's part of `range` by itself into authored_, so that the marks stay true: no character of one
  // author joins one of another.
  AuthoredRanges normalize_by_author(std::string_view text, TextRange range) {
    AuthoredRanges result;
    authored_.clear();
    for (auto hand = range_behind(*ranges_, range.begin); hand != ranges_->end(); ++hand) {
      const size_t begin = std::max(hand->range.begin, range.begin), end = std::min(hand->range.end, range.end);
      if (begin >= end || meter_.stopped()) break;
      const std::string_view part = text.substr(begin, end - begin);
      const size_t from = authored_.size();
      authored_ += begin == range.begin ? parts_.normalizer.apply(part, &normalized_, &meter_)
                                        : parts_.normalizer.apply_to_rest(part, &normalized_, &meter_);
      result.push_back({{from, authored_.size()}, hand->author});
    }
    return result;
  }

  Status encode_normalized(std::string_view text, bool at_start) {
    QUIRE_RETURN_IF_ERROR(parts_.pre_tokenizer.split(text, at_start, &pieces_, &meter_));
    for (const TextRange range : pieces_.pieces) {
      const std::string_view piece = pieces_.text.substr(range.begin, range.end - range.begin);
      for (size_t begin = 0; begin < piece.size();) {
        const size_t end = parts_.model.independent_end(piece, begin, &meter_);
        if (meter_.spent()) return meter_.why();
        encode_piece(piece.substr(begin, end - begin));
        begin = end;
      }
    }
    return {};
  }

  void encode_piece(std::string_view piece) {
    const std::span<const int32_t> known = cache_.find(piece);
    if (!known.empty()) {
      out_->insert(out_->end(), known.begin(), known.end());
      return;
    }
    const size_t before = out_->size();
    parts_.model.encode(piece, &workspace_, out_);
    if (meter_.stopped()) return;  // half a piece
    cache_.put(piece, std::span<const int32_t>(*out_).subspan(before));
  }

  const Parts& parts_;
  const AuthoredRanges* ranges_;
  Decision special_;
  WorkMeter meter_;
  PieceCache cache_{0};
  BpeModel::Workspace workspace_;
  PieceList pieces_;
  std::string normalized_;
  std::string authored_;
  std::vector<int32_t>* out_ = nullptr;
};

namespace {

// Whether some text of any length may become no token, or one.
bool may_drop_text(const TokenizerSpec& spec) {
  if (!spec.byte_level) return true;
  const auto takes_along = [](const AddedToken& token) { return token.lstrip || token.rstrip; };
  const auto removes = [](const PreTokenizerStep& step) { return step.behavior == SplitBehavior::kRemoved; };
  const auto replaces = [](const NormalizerStep& step) { return step.kind == NormalizerStep::Kind::kReplace; };
  if (std::ranges::any_of(spec.added_tokens, takes_along) || std::ranges::any_of(spec.pre_tokenizer, removes) ||
      std::ranges::any_of(spec.normalizer, replaces)) {
    return true;
  }
  return spec.unknown_id < 0 || spec.fuse_unknown;
}

// Bytes of text that a token stands for at most; 0: no number is known.
size_t longest_token_bytes(const TokenizerSpec& spec) {
  constexpr size_t kComposedBytes = 4;  // of text, for each byte that composition (NFC) leaves, with room
  if (may_drop_text(spec)) return 0;
  size_t longest = 1;
  for (int32_t id = 0; id < spec.vocabulary.size(); ++id) longest = std::max(longest, spec.vocabulary.text(id).size());
  return spec.normalizer.empty() ? longest : longest * kComposedBytes;
}

}  // namespace

Tokenizer::Tokenizer(TokenizerSpec spec) : spec_(std::move(spec)) {}
Tokenizer::~Tokenizer() = default;

Result<std::unique_ptr<Tokenizer>> Tokenizer::create(TokenizerSpec spec) {
  QUIRE_RETURN_IF_ERROR(check_spec(spec));
  std::unique_ptr<Tokenizer> tokenizer(new Tokenizer(std::move(spec)));
  TokenizerSpec& own = tokenizer->spec_;

  tokenizer->is_special_.resize(static_cast<size_t>(own.vocabulary.size()));
  tokenizer->longest_token_bytes_ = longest_token_bytes(own);
  QUIRE_ASSIGN_OR_RETURN(Normalizer normalizer, Normalizer::create(std::move(own.normalizer)));
  QUIRE_ASSIGN_OR_RETURN(PreTokenizer pre_tokenizer, PreTokenizer::create(own.pre_tokenizer));
  Result<BpeModel> model = BpeModel::create(&own);
  if (!model.ok()) return model.status();
  std::vector<AddedTokenFinder::Entry> raw, normalized;
  std::string storage;
  for (AddedToken& token : own.added_tokens) {
    if (token.special) tokenizer->is_special_[static_cast<size_t>(token.id)] = true;
    if (token.normalized) {
      std::string pattern(normalizer.apply(token.text, &storage));
      if (pattern != token.text) tokenizer->normalized_texts_.emplace_back(token.id, pattern);
      normalized.push_back({std::move(pattern), std::move(token)});
    } else {
      std::string pattern = std::exchange(token.text, {});
      raw.push_back({std::move(pattern), std::move(token)});
    }
  }
  own.added_tokens = {};
  std::sort(tokenizer->normalized_texts_.begin(), tokenizer->normalized_texts_.end());
  QUIRE_ASSIGN_OR_RETURN(AddedTokenFinder raw_finder, AddedTokenFinder::create(std::move(raw)));
  QUIRE_ASSIGN_OR_RETURN(AddedTokenFinder normalized_finder, AddedTokenFinder::create(std::move(normalized)));
  tokenizer->parts_ = std::make_unique<Parts>(Parts{std::move(normalizer), std::move(pre_tokenizer), std::move(*model),
                                                    std::move(raw_finder), std::move(normalized_finder)});

  std::vector<int32_t>& ends = own.end_of_generation_ids;
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  tokenizer->adds_bos_ =
      own.bos_id >= 0 && std::find(own.prefix_ids.begin(), own.prefix_ids.end(), own.bos_id) != own.prefix_ids.end();
  return tokenizer;
}

Result<std::vector<int32_t>> Tokenizer::encode(std::string_view text, EncodeOptions options,
                                               const WorkBudget* budget) const {
  if (text.size() >= kMaxTextBytes) {
    return out_of_range("a text of " + std::to_string(text.size()) + " bytes is too long to tokenize; the limit is " +
                        std::to_string(kMaxTextBytes));
  }
  WorkMeter meter(budget);
  std::string repaired;
  if (!is_valid(text, &meter)) {
    repaired = repair(text, &meter);
    text = repaired;
  }
  if (meter.stopped()) return meter.why();
  std::vector<int32_t> ids;
  if (options.add_special) ids = spec_.prefix_ids;
  const Decision special = options.parse_special ? Decision::kTake : Decision::kPassOver;
  Encoder encoder(*this, nullptr, special, budget);
  QUIRE_RETURN_IF_ERROR(encoder.run(text, &ids));
  if (options.add_special) ids.insert(ids.end(), spec_.suffix_ids.begin(), spec_.suffix_ids.end());
  return ids;
}

Result<std::vector<int32_t>> Tokenizer::encode_chat(const MarkedText& chat, const WorkBudget* budget) const {
  if (chat.text.size() >= kMaxTextBytes) {
    return out_of_range("a chat of " + std::to_string(chat.text.size()) +
                        " bytes is too long to tokenize; the limit is " + std::to_string(kMaxTextBytes));
  }
  WorkMeter meter(budget);
  if (!is_valid(chat.text, &meter)) {
    const MarkedText repaired = repair_marked(chat, &meter);
    return meter.stopped() ? Result<std::vector<int32_t>>(meter.why()) : encode_chat(repaired, budget);
  }
  const AuthoredRanges ranges = authored_ranges(chat);
  std::vector<int32_t> ids;
  Encoder encoder(*this, &ranges, Decision::kPassOver, budget);
  QUIRE_RETURN_IF_ERROR(encoder.run(chat.text, &ids));
  if (adds_bos_ && (ids.empty() || ids.front() != spec_.bos_id)) ids.insert(ids.begin(), spec_.bos_id);
  return ids;
}

std::string Tokenizer::token_bytes(int32_t id, bool render_special) const {
  if (id < 0 || id >= vocab_size() || (is_special_[static_cast<size_t>(id)] && !render_special)) return {};
  std::string_view text = spec_.vocabulary.text(id);
  const auto own_text = std::lower_bound(normalized_texts_.begin(), normalized_texts_.end(), id,
                                         [](const auto& entry, int32_t wanted) { return entry.first < wanted; });
  if (own_text != normalized_texts_.end() && own_text->first == id) text = own_text->second;
  if (spec_.decoder == DecoderKind::kByteLevel) return stand_ins_to_bytes(text);
  if (const std::optional<char> byte = byte_token(text)) return std::string(1, *byte);
  return replace_all(text, kSpaceMark, " ");
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool render_special) const {
  Detokenizer detokenizer(*this, render_special);
  std::string text;
  for (const int32_t id : ids) text += detokenizer.push(id);
  return text + detokenizer.finish();
}

int64_t Tokenizer::least_tokens(size_t bytes) const {
  return longest_token_bytes_ == 0 ? 0 : static_cast<int64_t>(bytes / longest_token_bytes_);
}

int64_t Tokenizer::memory_bytes() const {
  return static_cast<int64_t>(sizeof *this + sizeof(Parts) + is_special_.capacity() / 8) +
         spec_.vocabulary.memory_bytes() + parts_->model.memory_bytes() + parts_->raw.memory_bytes() +
         parts_->normalized.memory_bytes();
}

}  // namespace quire
