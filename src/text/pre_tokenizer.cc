#include "text/pre_tokenizer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "text/byte_alphabet.h"
#include "text/normalizer.h"
#include "text/regex.h"
#include "text/unicode.h"
#include "text/utf8.h"

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

void match_scanner(std::string_view text, size_t (*match_end)(std::string_view, size_t), Parts* parts) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = match_end(text, at);
    parts->push_back({{at, end}, true});
    at = end;
  }
}

void match_characters(std::string_view text, uint16_t mask, Parts* parts) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = at + utf8_length(text[at]);
    if (char_bits(utf8_decode(text.data() + at)) & mask) add_match({at, end}, parts);
    at = end;
  }
}

void match_literal(std::string_view text, std::string_view pattern, Parts* parts) {
  for (size_t at = text.find(pattern); at != std::string_view::npos; at = text.find(pattern, at + pattern.size())) {
    add_match({at, at + pattern.size()}, parts);
  }
}

void match_trailing_space(std::string_view text, Parts* parts) {
  for (TextRange m = find_trailing_space(text, 0); m.begin != std::string_view::npos;
       m = find_trailing_space(text, m.end)) {
    add_match(m, parts);
  }
}

Status match_regex(std::string_view text, Regex::Search* search, Parts* parts) {
  search->start(text);
  for (TextRange m;;) {
    QUIRE_ASSIGN_OR_RETURN(const bool found, search->next(&m.begin, &m.end));
    if (!found) return {};
    add_match(m, parts);
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
  Status match(std::string_view text, std::optional<Regex::Search>* search, Parts* parts) const;
  // Steps that change text: rewrites one piece into `out`.
  void rewrite(std::string_view piece, bool at_start, std::string* out) const;
  bool rewrites() const {
    using Kind = PreTokenizerStep::Kind;
    return spec.kind == Kind::kPrefixSpace || spec.kind == Kind::kByteStandIns || spec.kind == Kind::kMetaspace;
  }
  void rewrite_all(bool at_start, PieceList* list) const;
  Status split_all(PieceList* list) const;
};

Status PreTokenizer::Step::match(std::string_view text, std::optional<Regex::Search>* search, Parts* parts) const {
  switch (matcher) {
    case Matcher::kGpt2:
      match_scanner(text, gpt2_match_end, parts);
      break;
    case Matcher::kLlama3:
      match_scanner(
          text, [](std::string_view t, size_t at) { return llama3_match_end(t, at, 3); }, parts);
      break;
    case Matcher::kQwen2:
      match_scanner(
          text, [](std::string_view t, size_t at) { return llama3_match_end(t, at, 1); }, parts);
      break;
    case Matcher::kTrailingSpace:
      match_trailing_space(text, parts);
      break;
    case Matcher::kRegex:
      QUIRE_RETURN_IF_ERROR(match_regex(text, &**search, parts));
      break;
    case Matcher::kLiteral:
      match_literal(text, spec.pattern, parts);
      break;
    case Matcher::kDigits:
      match_characters(text, kNumeric, parts);
      break;
    case Matcher::kPunctuation:
      match_characters(text, kPunctuationBit, parts);
      break;
    case Matcher::kNone:
      break;
  }
  add_rest(text.size(), parts);
  if (spec.invert) {
    for (Part& part : *parts) part.matched = !part.matched;
  }
  return {};
}

void PreTokenizer::Step::rewrite(std::string_view piece, bool at_start, std::string* out) const {
  if (spec.kind == PreTokenizerStep::Kind::kPrefixSpace) {
    if (!piece.starts_with(' ')) *out += ' ';
    *out += piece;
    return;
  }
  if (spec.kind == PreTokenizerStep::Kind::kByteStandIns) {
    *out += bytes_to_stand_ins(piece);
    return;
  }
  const std::string replaced = replace_all(piece, " ", spec.pattern);
  const bool wanted = spec.prepend == PrependScheme::kAlways || (spec.prepend == PrependScheme::kFirst && at_start);
  if (wanted && !replaced.starts_with(spec.pattern)) *out += spec.pattern;
  *out += replaced;
}

void PreTokenizer::Step::rewrite_all(bool at_start, PieceList* list) const {
  std::string text;
  text.reserve(list->text.size() + list->pieces.size());
  for (TextRange& piece : list->pieces) {
    const std::string_view old = list->text.substr(piece.begin, piece.end - piece.begin);
    const size_t begin = text.size();
    rewrite(old, at_start && piece.begin == 0, &text);
    piece = {begin, text.size()};
  }
  list->storage = std::move(text);
  list->text = list->storage;
}

Status PreTokenizer::Step::split_all(PieceList* list) const {
  std::vector<TextRange> result;
  result.reserve(list->pieces.size() + list->text.size() / 4);
  Parts parts;
  std::optional<Regex::Search> search;
  if (regex) search.emplace(*regex);
  for (const TextRange piece : list->pieces) {
    parts.clear();
    QUIRE_RETURN_IF_ERROR(match(list->text.substr(piece.begin, piece.end - piece.begin), &search, &parts));
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

Status PreTokenizer::split(std::string_view text, bool at_start, PieceList* out) const {
  out->text = text;
  out->pieces.clear();
  if (text.empty()) return {};
  out->pieces.push_back({0, text.size()});
  for (const Step& step : steps_) {
    if (step.rewrites()) step.rewrite_all(at_start, out);
    if (step.matcher != Step::Matcher::kNone) QUIRE_RETURN_IF_ERROR(step.split_all(out));
  }
  return {};
}

}  // namespace quire
