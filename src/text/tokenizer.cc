#include "text/tokenizer.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/byte_alphabet.h"
#include "text/detokenizer.h"
#include "text/normalizer.h"
#include "text/piece_cache.h"
#include "text/pre_tokenizer.h"
#include "text/utf8.h"

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

// The parts of a chat that its template wrote; neighbouring spans are one part.
std::vector<TextRange> template_ranges(const MarkedText& text) {
  std::vector<TextRange> ranges;
  for (const MarkedText::Span& span : text.spans) {
    if (!span.from_template || span.begin >= span.end) continue;
    if (!ranges.empty() && ranges.back().end == span.begin) {
      ranges.back().end = span.end;
    } else {
      ranges.push_back({span.begin, span.end});
    }
  }
  return ranges;
}

// The same chat in valid UTF-8, each span by itself.
MarkedText repair_marked(const MarkedText& text) {
  MarkedText repaired;
  for (const MarkedText::Span& span : text.spans) {
    const size_t begin = repaired.text.size();
    repaired.text += repair_utf8(std::string_view(text.text).substr(span.begin, span.end - span.begin));
    repaired.spans.push_back({begin, repaired.text.size(), span.from_template});
  }
  return repaired;
}

// Whether special tokens at `match` count, given what the template wrote.
Decision decide_in_chat(const std::vector<TextRange>& from_template, TextRange match) {
  // The last part that begins at or before the match.
  auto part = std::upper_bound(from_template.begin(), from_template.end(), match.begin,
                               [](size_t at, const TextRange& r) { return at < r.begin; });
  const size_t template_end = part == from_template.begin() ? 0 : std::prev(part)->end;
  if (match.end <= template_end) return Decision::kTake;
  const bool touches_template = match.begin < template_end || (part != from_template.end() && part->begin < match.end);
  // A spelling that spans both hands might hide a token that the template wrote in its second half.
  return touches_template ? Decision::kRetry : Decision::kPassOver;
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
  // Says whether the special token that the given bytes of the text spell counts.
  using DecideSpecial = std::function<Decision(TextRange range)>;

  Encoder(const Tokenizer& tokenizer, size_t text_bytes, DecideSpecial decide)
      : parts_(*tokenizer.parts_), decide_(std::move(decide)), cache_(text_bytes) {}

  Status run(std::string_view text, std::vector<int32_t>* out) {
    out_ = out;
    const auto decide = [this](const AddedToken& token, TextRange range) {
      return token.special ? decide_(range) : Decision::kTake;
    };
    for (const auto& segment : parts_.raw.find(text, decide)) {
      if (segment.id >= 0) {
        out->push_back(segment.id);
      } else {
        QUIRE_RETURN_IF_ERROR(encode_plain(text, segment.range));
      }
    }
    return {};
  }

 private:
  Status encode_plain(std::string_view text, TextRange range) {
    const bool at_start = range.begin == 0;
    const std::string_view normalized =
        parts_.normalizer.apply(text.substr(range.begin, range.end - range.begin), &normalized_);
    if (parts_.normalized.empty()) return encode_normalized(normalized, at_start);
    const auto decide = [this, range](const AddedToken& token, TextRange) {
      return token.special ? decide_(range) : Decision::kTake;
    };
    for (const auto& segment : parts_.normalized.find(normalized, decide)) {
      if (segment.id >= 0) {
        out_->push_back(segment.id);
      } else {
        const std::string_view part = normalized.substr(segment.range.begin, segment.range.end - segment.range.begin);
        QUIRE_RETURN_IF_ERROR(encode_normalized(part, at_start && segment.range.begin == 0));
      }
    }
    return {};
  }

  Status encode_normalized(std::string_view text, bool at_start) {
    QUIRE_RETURN_IF_ERROR(parts_.pre_tokenizer.split(text, at_start, &pieces_));
    for (const TextRange range : pieces_.pieces) {
      const std::string_view piece = pieces_.text.substr(range.begin, range.end - range.begin);
      for (size_t begin = 0; begin < piece.size();) {
        const size_t end = parts_.model.independent_end(piece, begin);
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
    cache_.put(piece, std::span<const int32_t>(*out_).subspan(before));
  }

  const Parts& parts_;
  DecideSpecial decide_;
  PieceCache cache_;
  BpeModel::Workspace workspace_;
  PieceList pieces_;
  std::string normalized_;
  std::vector<int32_t>* out_ = nullptr;
};

Tokenizer::Tokenizer(TokenizerSpec spec) : spec_(std::move(spec)) {}
Tokenizer::~Tokenizer() = default;

Result<std::unique_ptr<Tokenizer>> Tokenizer::create(TokenizerSpec spec) {
  QUIRE_RETURN_IF_ERROR(check_spec(spec));
  std::unique_ptr<Tokenizer> tokenizer(new Tokenizer(std::move(spec)));
  TokenizerSpec& own = tokenizer->spec_;

  tokenizer->is_special_.resize(static_cast<size_t>(own.vocabulary.size()));
  QUIRE_ASSIGN_OR_RETURN(Normalizer normalizer, Normalizer::create(std::move(own.normalizer)));
  QUIRE_ASSIGN_OR_RETURN(PreTokenizer pre_tokenizer, PreTokenizer::create(own.pre_tokenizer));
  QUIRE_ASSIGN_OR_RETURN(BpeModel model, BpeModel::create(&own));
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
  tokenizer->parts_ = std::make_unique<Parts>(Parts{std::move(normalizer), std::move(pre_tokenizer), std::move(model),
                                                    std::move(raw_finder), std::move(normalized_finder)});

  std::vector<int32_t>& ends = own.end_of_generation_ids;
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  tokenizer->adds_bos_ =
      own.bos_id >= 0 && std::find(own.prefix_ids.begin(), own.prefix_ids.end(), own.bos_id) != own.prefix_ids.end();
  return tokenizer;
}

Result<std::vector<int32_t>> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  if (text.size() >= kMaxTextBytes) {
    return out_of_range("a text of " + std::to_string(text.size()) + " bytes is too long to tokenize; the limit is " +
                        std::to_string(kMaxTextBytes));
  }
  std::string repaired;
  if (!is_valid_utf8(text)) {
    repaired = repair_utf8(text);
    text = repaired;
  }
  std::vector<int32_t> ids;
  if (options.add_special) ids = spec_.prefix_ids;
  const Decision special = options.parse_special ? Decision::kTake : Decision::kPassOver;
  Encoder encoder(*this, text.size(), [special](TextRange) { return special; });
  QUIRE_RETURN_IF_ERROR(encoder.run(text, &ids));
  if (options.add_special) ids.insert(ids.end(), spec_.suffix_ids.begin(), spec_.suffix_ids.end());
  return ids;
}

Result<std::vector<int32_t>> Tokenizer::encode_chat(const MarkedText& chat) const {
  if (chat.text.size() >= kMaxTextBytes) {
    return out_of_range("a chat of " + std::to_string(chat.text.size()) +
                        " bytes is too long to tokenize; the limit is " + std::to_string(kMaxTextBytes));
  }
  if (!is_valid_utf8(chat.text)) return encode_chat(repair_marked(chat));
  const std::vector<TextRange> from_template = template_ranges(chat);
  std::vector<int32_t> ids;
  Encoder encoder(*this, chat.text.size(),
                  [&from_template](TextRange range) { return decide_in_chat(from_template, range); });
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

int64_t Tokenizer::memory_bytes() const {
  return static_cast<int64_t>(sizeof *this + sizeof(Parts) + is_special_.capacity() / 8) +
         spec_.vocabulary.memory_bytes() + parts_->model.memory_bytes() + parts_->raw.memory_bytes() +
         parts_->normalized.memory_bytes();
}

}  // namespace quire
