#include "text/added_tokens.h"

#include <algorithm>

#include "unicode/unicode.h"
#include "unicode/utf8.h"

namespace quire {
namespace {

unsigned char byte_at(std::string_view text, size_t i) { return static_cast<unsigned char>(text[i]); }

// Start of the last character of a text that is not empty.
size_t last_char_begin(std::string_view text) {
  size_t i = text.size() - 1;
  while (i > 0 && (byte_at(text, i) & 0xC0) == 0x80) --i;
  return i;
}

bool ends_with_any(std::string_view text, uint16_t mask) {
  return !text.empty() && (char_bits(utf8_decode(text.data() + last_char_begin(text))) & mask) != 0;
}

bool starts_with_any(std::string_view text, uint16_t mask) {
  return !text.empty() && (char_bits(utf8_decode(text.data())) & mask) != 0;
}

// The range that a match takes: with the whitespace around it, if its token says so.
TextRange widen(const AddedToken& token, TextRange range, size_t floor, std::string_view text) {
  if (token.lstrip) {
    while (range.begin > floor && ends_with_any(text.substr(0, range.begin), kSpace)) {
      range.begin = last_char_begin(text.substr(0, range.begin));
    }
    range.begin = std::max(range.begin, floor);
  }
  if (token.rstrip) {
    while (starts_with_any(text.substr(range.end), kSpace)) range.end += utf8_length(text[range.end]);
  }
  return range;
}

}  // namespace

Result<AddedTokenFinder> AddedTokenFinder::create(std::vector<Entry> entries) {
  for (const Entry& entry : entries) {
    if (entry.pattern.empty()) {
      return corrupt("added token " + std::to_string(entry.token.id) + " has an empty text");
    }
    if (entry.pattern.size() > kMaxTokenBytes) {
      return corrupt("added token " + std::to_string(entry.token.id) + " is longer than " +
                     std::to_string(kMaxTokenBytes) + " bytes");
    }
  }
  AddedTokenFinder finder;
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.pattern < b.pattern; });
  entries.erase(std::unique(entries.begin(), entries.end(),
                            [](const Entry& a, const Entry& b) { return a.pattern == b.pattern; }),
                entries.end());
  finder.entries_ = std::move(entries);
  for (const Entry& entry : finder.entries_) ++finder.first_by_byte_[byte_at(entry.pattern, 0) + 1u];
  for (size_t b = 1; b < finder.first_by_byte_.size(); ++b) finder.first_by_byte_[b] += finder.first_by_byte_[b - 1];
  return finder;
}

void AddedTokenFinder::spelled_at(std::string_view text, size_t at, Entries* spelled) const {
  spelled->clear();
  auto low = entries_.begin() + first_by_byte_[byte_at(text, at)];
  auto high = entries_.begin() + first_by_byte_[byte_at(text, at) + 1u];
  // [low, high) agree with the text in their first `depth` bytes.
  for (size_t depth = 1; low != high; ++depth) {
    if (low->pattern.size() == depth) spelled->push_back(&*low++);
    if (at + depth == text.size()) break;
    const unsigned char next = byte_at(text, at + depth);
    const auto before = [depth](const Entry& e, unsigned char b) { return byte_at(e.pattern, depth) < b; };
    const auto after = [depth](unsigned char b, const Entry& e) { return b < byte_at(e.pattern, depth); };
    low = std::lower_bound(low, high, next, before);
    high = std::upper_bound(low, high, next, after);
  }
}

const AddedTokenFinder::Entry* AddedTokenFinder::accepted(const Entries& spelled, const Decide& decide, size_t* at) {
  for (auto entry = spelled.rbegin(); entry != spelled.rend(); ++entry) {
    const size_t end = *at + (*entry)->pattern.size();
    const Decision decision = decide(**entry, {*at, end});
    if (decision == Decision::kRetry) continue;
    *at = end;
    return decision == Decision::kTake ? *entry : nullptr;
  }
  ++*at;
  return nullptr;
}

std::vector<AddedTokenFinder::Segment> AddedTokenFinder::find(std::string_view text, const Decide& decide,
                                                              WorkMeter* meter) const {
  std::vector<Segment> segments;
  Entries spelled;
  size_t plain = 0;  // where the ordinary text begins that is not yet in a segment
  for (size_t at = 0; !entries_.empty() && at < text.size();) {
    if (meter != nullptr && meter->spent()) return segments;
    const size_t begin = at;
    spelled_at(text, at, &spelled);
    const Entry* entry = accepted(spelled, decide, &at);
    if (entry == nullptr) continue;
    const AddedToken& token = entry->token;
    const TextRange match{begin, at};
    if (token.single_word && (ends_with_any(text.substr(0, match.begin), kWordNeighbour) ||
                              starts_with_any(text.substr(match.end), kWordNeighbour))) {
      continue;
    }
    const TextRange range = widen(token, match, plain, text);
    if (plain < range.begin) segments.push_back({{plain, range.begin}, -1});
    segments.push_back({range, token.id});
    plain = range.end;
  }
  if (plain < text.size()) segments.push_back({{plain, text.size()}, -1});
  return segments;
}

int64_t AddedTokenFinder::memory_bytes() const {
  size_t bytes = entries_.capacity() * sizeof(Entry);
  for (const Entry& entry : entries_) {
    if (entry.pattern.capacity() > 15) bytes += entry.pattern.capacity() + 1;
    if (entry.token.text.capacity() > 15) bytes += entry.token.text.capacity() + 1;
  }
  return static_cast<int64_t>(bytes);
}

}  // namespace quire
