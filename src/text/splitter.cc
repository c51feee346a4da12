#include "text/splitter.h"

#include "unicode/unicode.h"
#include "unicode/utf8.h"

namespace quire {
namespace {

struct Char {
  uint16_t bits = 0;
  uint32_t length = 0;  // bytes; 0 past the end of the text

  bool any(int mask) const { return (bits & mask) != 0; }
};

Char char_at(std::string_view text, size_t at) {
  if (at >= text.size()) return {};
  return {char_bits(utf8_decode(text.data() + at)), utf8_length(text[at])};
}

// End of the run from `at` of characters that have a bit of `mask`.
size_t run_end(std::string_view text, size_t at, int mask) {
  for (Char c = char_at(text, at); c.any(mask); c = char_at(text, at)) at += c.length;
  return at;
}

bool is_symbol(Char c) { return c.length != 0 && !c.any(kLetter | kNumber | kSpace); }

size_t symbol_run_end(std::string_view text, size_t at) {
  for (Char c = char_at(text, at); is_symbol(c); c = char_at(text, at)) at += c.length;
  return at;
}

// Length of 's 't 're 've 'm 'll 'd after an apostrophe, apostrophe included; 0: none.
size_t contraction_length(std::string_view rest) {
  if (rest.size() < 2) return 0;
  switch (rest[1]) {
    case 's':
    case 't':
    case 'm':
    case 'd':
      return 2;
    case 'r':
    case 'v':
      return rest.size() > 2 && rest[2] == 'e' ? 3 : 0;
    case 'l':
      return rest.size() > 2 && rest[2] == 'l' ? 3 : 0;
    default:
      return 0;
  }
}

// The same in any case. U+017F (long s) folds to s.
size_t folded_contraction_length(std::string_view rest) {
  if (rest.substr(1, 2) == "\xC5\xBF") return 3;
  char lower[3] = {'\''};
  size_t n = 1;
  for (; n < 3 && n < rest.size(); ++n) {
    const char c = rest[n];
    lower[n] = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return contraction_length({lower, n});
}

// \s+(?!\S)|\s+ over the whitespace run [at, end): leaves the last character to what follows, if it has company.
size_t space_match_end(std::string_view text, size_t at, size_t end) {
  if (end == text.size()) return end;
  size_t last = end - 1;
  while ((static_cast<unsigned char>(text[last]) & 0xC0) == 0x80) --last;
  return last > at ? last : end;
}

}  // namespace

size_t gpt2_match_end(std::string_view text, size_t at) {
  if (text[at] == '\'') {
    if (const size_t n = contraction_length(text.substr(at))) return at + n;
  }
  const size_t word = text[at] == ' ' ? at + 1 : at;
  const Char first = char_at(text, word);
  if (first.any(kLetter)) return run_end(text, word, kLetter);
  if (first.any(kNumber)) return run_end(text, word, kNumber);
  if (is_symbol(first)) return symbol_run_end(text, word);
  return space_match_end(text, at, run_end(text, at, kSpace));
}

size_t llama3_match_end(std::string_view text, size_t at, int max_digits) {
  if (text[at] == '\'') {
    if (const size_t n = folded_contraction_length(text.substr(at))) return at + n;
  }
  const Char first = char_at(text, at);
  if (first.any(kLetter)) return run_end(text, at, kLetter);
  if (first.any(kNumber)) {
    size_t end = at + first.length;
    for (int n = 1; n < max_digits; ++n) {
      const Char c = char_at(text, end);
      if (!c.any(kNumber)) break;
      end += c.length;
    }
    return end;
  }
  if (!first.any(kNewline) && char_at(text, at + first.length).any(kLetter)) {
    return run_end(text, at + first.length, kLetter);
  }
  const size_t symbols = text[at] == ' ' ? at + 1 : at;
  if (is_symbol(char_at(text, symbols))) return run_end(text, symbol_run_end(text, symbols), kNewline);

  const size_t end = run_end(text, at, kSpace);
  const size_t newline = text.substr(at, end - at).find_last_of("\r\n");
  return newline != std::string_view::npos ? at + newline + 1 : space_match_end(text, at, end);
}

TextRange find_trailing_space(std::string_view text, size_t from) {
  while (from < text.size()) {
    const Char c = char_at(text, from);
    if (!c.any(kSpace)) {
      from += c.length;
      continue;
    }
    const size_t run = run_end(text, from, kSpace);
    if (run == text.size()) return {from, run};
    // The longest part of the run, not empty, that ends before a line feed.
    const size_t newline = text.substr(from, run - from).rfind('\n');
    if (newline != std::string_view::npos && newline > 0) return {from, from + newline};
    from = run;
  }
  return {std::string_view::npos, std::string_view::npos};
}

}  // namespace quire
