#include "text/pre_tokenizer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "text/byte_alphabet.h"
#include "text/normalizer.h"
#include "text/regex.h"
#include "unicode/unicode.h"
#include "unicode/utf8.h"

namespace quire {
namespace {

// A part of a piece: a match of the step's pattern, or what lies between two.
struct Part {
  TextRange range;
  bool matched = false;
};

using Parts = std::vector<Part>;

// Appends the match, and before it the gap since the last one.
void add_match(TextRange match, Parts* parts) {
  const size_t end = parts->empty() ? 0 : parts->back().range.end;
  if (match.begin > end) parts->push_back({{end, match.begin}, false});
  parts->push_back({match, true});
}

void add_rest(size_t size, Parts* parts) {
  const size_t end = parts->empty() ? 0 : parts->back().range.end;
  if (end < size) parts->push_back({{end, size}, false});
}

// What the matchers of a step share: what they read, what they write, and when they stop.
struct Matching {
  std::string_view text;
  Parts* parts;
  WorkMeter* meter;

  bool stopped_after(size_t bytes) const { return meter != nullptr && meter->spent(bytes); }
};

void match_scanner(const Matching& m, size_t (*match_end)(std::string_view, size_t)) {
  const auto [text, parts, meter] = m;
  for (size_t at = 0; at < text.size();) {
    const size_t end = match_end(text, at);
    if (m.stopped_after(end - at)) return;
    parts->push_back({{at, end}, true});
    at = end;
  }
}

void match_characters(const Matching& m, uint16_t mask) {
  const auto [text, parts, meter] = m;
  for (size_t at = 0; at < text.size() && !m.stopped_after(1);) {
    const size_t end = at + utf8_length(text[at]);
    if (char_bits(utf8_decode(text.data() + at)) & mask) add_match({at, end}, parts);
    at = end;
  }
}

void match_literal(const Matching& m, std::string_view pattern) {
  const auto [text, parts, meter] = m;
  for (size_t at = text.find(pattern); at != std::string_view::npos; at = text.find(pattern, at + pattern.size())) {
    if (m.stopped_after(1)) return;
    add_match({at, at + pattern.size()}, parts);
  }
}

void match_trailing_space(const Matching& m) {
  for (TextRange found = find_trailing_space(m.text, 0); found.begin != std::string_view::npos;
       found = find_trailing_space(m.text, found.end)) {
    if (m.stopped_after(1)) return;
    add_match(found, m.parts);
  }
}

Status match_regex(const Matching& m, Regex::Search* search) {
  search->start(m.text);
  for (TextRange range;;) {
    QUIRE_ASSIGN_OR_RETURN(const bool found, search->next(&range.begin, &range.end));
    if (!found) return {};
    const size_t end = m.parts->empty() ? 0 : m.parts->back().range.end;
    if (m.stopped_after(range.end - end)) return {};
    add_match(range, m.parts);
  }
}

// A match joins what stands before it, unless that is a match too.
void merge_with_previous(const Parts& parts, std::vector<TextRange>* out) {
  bool after_match = false;
  const size_t first = out->size();
  for (const Part& part : parts) {
    if (part.matched && !after_match && out->size() > first) {
      out->back().end = part.range.end;
    } else {
      out->push_back(part.range);
    }
    after_match = part.matched;
  }
}

void merge_with_next(const Parts& parts, std::vector<TextRange>* out) {
  bool before_match = false;
  const auto first = static_cast<std::ptrdiff_t>(out->size());
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (part->matched && !before_match && static_cast<std::ptrdiff_t>(out->size()) > first) {
      out->back().begin = part->range.begin;
    } else {
      out->push_back(part->range);
    }
    before_match = part->matched;
  }
  std::reverse(out->begin() + first, out->end());
}

void merge_alike(const Parts& parts, std::vector<TextRange>* out) {
  std::optional<bool> last;
  for (const Part& part : parts) {
    if (last == part.matched) {
      out->back().end = part.range.end;
    } else {
      out->push_back(part.range);
    }
    last = part.matched;
  }
}

// Appends the pieces that the behavior makes of `parts`, shifted by `offset`; empty ones are dropped.
void apply_behavior(SplitBehavior behavior, const Parts& parts, size_t offset, std::vector<TextRange>* out) {
  const size_t first = out->size();
  switch (behavior) {
    case SplitBehavior::kRemoved:
      for (const Part& part : parts) {
        if (!part.matched) out->push_back(part.range);
      }
      break;
    case SplitBehavior::kIsolated:
      for (const Part& part : parts) out->push_back(part.range);
      break;
    case SplitBehavior::kMergedWithPrevious:
      merge_with_previous(parts, out);
      break;
    case SplitBehavior::kMergedWithNext:
      merge_with_next(parts, out);
      break;
    case SplitBehavior::kContiguous:
      merge_alike(parts, out);
      break;
  }
  size_t kept = first;
  for (size_t i = first; i < out->size(); ++i) {
    TextRange range = (*out)[i];
    if (range.begin == range.end) continue;
    (*out)[kept++] = {range.begin + offset, range.end + offset};
  }
  out->resize(kept);
}

}  // namespace

struct PreTokenizer::Step {
  enum class Matcher { kGpt2, kLlama3, kQwen2, kTrailingSpace, kRegex, kLiteral, kDigits, kPunctuation, kNone };

  PreTokenizerStep spec;
  Matcher matcher = Matcher::kNone;
  std::optional<Regex> regex;

  // `search` is there for Matcher::kRegex only.
  Status match(const Matching& matching, std::optional<Regex::Search>* search) const;
  // Steps that change text: rewrites one piece into `out`.
  void rewrite(std::string_view piece, bool at_start, std::string* out, WorkMeter* meter) const;
  bool rewrites() const {
    using Kind = PreTokenizerStep::Kind;
    return spec.kind == Kind::kPrefixSpace || spec.kind == Kind::kByteStandIns || spec.kind == Kind::kMetaspace;
  }
  void rewrite_all(bool at_start, PieceList* list, WorkMeter* meter) const;
  Status split_all(PieceList* list, WorkMeter* meter) const;
};

Status PreTokenizer::Step::match(const Matching& matching, std::optional<Regex::Search>* search) const {
  switch (matcher) {
    case Matcher::kGpt2:
      match_scanner(matching, gpt2_match_end);
      break;
    case Matcher::kLlama3:
      match_scanner(matching, [](std::string_view t, size_t at) { return llama3_match_end(t, at, 3); });
      break;
    case Matcher::kQwen2:
      match_scanner(matching, [](std::string_view t, size_t at) { return llama3_match_end(t, at, 1); });
      break;
    case Matcher::kTrailingSpace:
      match_trailing_space(matching);
      break;
    case Matcher::kRegex:
      QUIRE_RETURN_IF_ERROR(match_regex(matching, &**search));
      break;
    case Matcher::kLiteral:
      match_literal(matching, spec.pattern);
      break;
    case Matcher::kDigits:
      match_characters(matching, kNumeric);
      break;
    case Matcher::kPunctuation:
      match_characters(matching, kPunctuationBit);
      break;
    case Matcher::kNone:
      break;
  }
  add_rest(matching.text.size(), matching.parts);
  if (spec.invert) {
    for (Part& part : *matching.parts) part.matched = !part.matched;
  }
  return {};
}

void PreTokenizer::Step::rewrite(std::string_view piece, bool at_start, std::string* out, WorkMeter* meter) const {
  if (spec.kind == PreTokenizerStep::Kind::kPrefixSpace) {
    if (!piece.starts_with(' ')) *out += ' ';
    *out += piece;
    return;
  }
  if (spec.kind == PreTokenizerStep::Kind::kByteStandIns) {
    *out += bytes_to_stand_ins(piece);
    return;
  }
  const std::string replaced = replace_all(piece, " ", spec.pattern, meter);
  const bool wanted = spec.prepend == PrependScheme::kAlways || (spec.prepend == PrependScheme::kFirst && at_start);
  if (wanted && !replaced.starts_with(spec.pattern)) *out += spec.pattern;
  *out += replaced;
}

void PreTokenizer::Step::rewrite_all(bool at_start, PieceList* list, WorkMeter* meter) const {
  std::string text;
  text.reserve(list->text.size() + list->pieces.size());
  for (TextRange& piece : list->pieces) {
    const std::string_view old = list->text.substr(piece.begin, piece.end - piece.begin);
    const size_t begin = text.size();
    if (meter != nullptr && meter->spent(old.size())) return;
    rewrite(old, at_start && piece.begin == 0, &text, meter);
    piece = {begin, text.size()};
  }
  list->storage = std::move(text);
  list->text = list->storage;
}

Status PreTokenizer::Step::split_all(PieceList* list, WorkMeter* meter) const {
  std::vector<TextRange> result;
  result.reserve(list->pieces.size() + list->text.size() / 4);
  Parts parts;
  std::optional<Regex::Search> search;
  if (regex) search.emplace(*regex);
  for (const TextRange piece : list->pieces) {
    parts.clear();
    const std::string_view text = list->text.substr(piece.begin, piece.end - piece.begin);
    QUIRE_RETURN_IF_ERROR(match({text, &parts, meter}, &search));
    if (meter != nullptr && meter->stopped()) return meter->why();
    apply_behavior(spec.behavior, parts, piece.begin, &result);
  }
  list->pieces = std::move(result);
  return {};
}

PreTokenizer::PreTokenizer(std::vector<Step> steps) : steps_(std::move(steps)) {}
PreTokenizer::PreTokenizer(PreTokenizer&&) noexcept = default;
PreTokenizer& PreTokenizer::operator=(PreTokenizer&&) noexcept = default;
PreTokenizer::~PreTokenizer() = default;

Result<PreTokenizer> PreTokenizer::create(const std::vector<PreTokenizerStep>& specs) {
  using Matcher = Step::Matcher;
  std::vector<Step> steps;
  for (const PreTokenizerStep& spec : specs) {
    Step step;
    step.spec = spec;
    switch (spec.kind) {
      case PreTokenizerStep::Kind::kRegex:
        step.matcher = spec.pattern == kGpt2Pattern            ? Matcher::kGpt2
                       : spec.pattern == kLlama3Pattern        ? Matcher::kLlama3
                       : spec.pattern == kQwen2Pattern         ? Matcher::kQwen2
                       : spec.pattern == kTrailingSpacePattern ? Matcher::kTrailingSpace
                                                               : Matcher::kRegex;
        if (step.matcher == Matcher::kRegex) {
          QUIRE_ASSIGN_OR_RETURN(step.regex, Regex::compile(spec.pattern));
        }
        break;
      case PreTokenizerStep::Kind::kLiteral:
        if (spec.pattern.empty()) return unsupported("the pre-tokenizer splits at an empty string");
        step.matcher = Matcher::kLiteral;
        break;
      case PreTokenizerStep::Kind::kDigits:
        step.matcher = Matcher::kDigits;
        break;
      case PreTokenizerStep::Kind::kPunctuation:
        step.matcher = Matcher::kPunctuation;
        break;
      case PreTokenizerStep::Kind::kPrefixSpace:
      case PreTokenizerStep::Kind::kByteStandIns:
        break;
      case PreTokenizerStep::Kind::kMetaspace:
        if (spec.pattern.empty()) return unsupported("the Metaspace pre-tokenizer has no replacement");
        if (spec.split) {
          step.matcher = Matcher::kLiteral;
          step.spec.behavior = SplitBehavior::kMergedWithNext;
        }
        break;
    }
    steps.push_back(std::move(step));
  }
  return PreTokenizer(std::move(steps));
}

Status PreTokenizer::split(std::string_view text, bool at_start, PieceList* out, WorkMeter* meter) const {
  out->text = text;
  out->pieces.clear();
  if (text.empty()) return {};
  out->pieces.push_back({0, text.size()});
  for (const Step& step : steps_) {
    if (step.rewrites()) step.rewrite_all(at_start, out, meter);
    if (meter != nullptr && meter->stopped()) return meter->why();
    if (step.matcher != Step::Matcher::kNone) QUIRE_RETURN_IF_ERROR(step.split_all(out, meter));
  }
  return {};
}

}  // namespace quire
