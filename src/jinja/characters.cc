#include "jinja/characters.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>

#include "jinja/character_tables.h"
#include "unicode/unicode.h"

namespace quire::jinja {
namespace {

constexpr char32_t kCapitalSigma = 0x3A3, kSmallSigma = 0x3C3, kFinalSigma = 0x3C2;
constexpr char32_t kCapitalIWithDot = 0x130, kCombiningDot = 0x307;

template <size_t N>
bool in_ranges(const CodePointRange (&ranges)[N], char32_t c) {
  const auto after = std::upper_bound(std::begin(ranges), std::end(ranges), c,
                                      [](char32_t value, const CodePointRange& range) { return value < range.first; });
  return after != std::begin(ranges) && c <= std::prev(after)->last;
}

const SpecialCase* find_special(char32_t c) {
  const auto at = std::lower_bound(std::begin(kSpecialCases), std::end(kSpecialCases), c,
                                   [](const SpecialCase& row, char32_t value) { return row.from < value; });
  return at != std::end(kSpecialCases) && at->from == c ? at : nullptr;
}

void append_all(const char32_t (&mapped)[3], Origin origin, TextBuilder& out) {
  for (const char32_t c : mapped) {
    if (c != 0) out.append(c, origin);
  }
}

void append_upper(char32_t c, Origin origin, TextBuilder& out) {
  if (const SpecialCase* special = find_special(c)) return append_all(special->upper, origin, out);
  out.append(static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))), origin);
}

void append_title(char32_t c, Origin origin, TextBuilder& out) {
  if (const SpecialCase* special = find_special(c)) return append_all(special->title, origin, out);
  out.append(static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))), origin);
}

bool is_case_ignorable(char32_t c) {
  if (c == '\'' || c == '.' || c == ':' || c == '^' || c == '`' || c == 0xA8 || c == 0xAD || c == 0xB7) return true;
  if (c == 0x2018 || c == 0x2019 || c == 0x2024 || c == 0x2027) return true;
  const auto kind = category(c);
  return kind == Category::kMn || kind == Category::kMe || kind == Category::kCf || kind == Category::kLm ||
         kind == Category::kSk;
}

// A sigma at `at` (its end is `after`) ends a word: a cased letter before it and none behind.
bool is_final_sigma(std::string_view text, size_t at, size_t after) {
  size_t back = at;
  char32_t before = 0;
  do {
    if (back == 0) return false;
    back = previous_boundary(text, back);
    size_t position = back;
    before = next_code_point(text, position);
  } while (is_case_ignorable(before));
  if (!is_cased(before)) return false;
  while (after < text.size()) {
    const char32_t next = next_code_point(text, after);
    if (!is_case_ignorable(next)) return !is_cased(next);
  }
  return true;
}

struct Position {
  std::string_view text;
  size_t at, after;
};

void append_lower(char32_t c, Position position, Origin origin, TextBuilder& out) {
  if (c == kCapitalIWithDot) {
    out.append(U'i', origin);
    return out.append(kCombiningDot, origin);
  }
  if (c == kCapitalSigma) {
    const bool final = is_final_sigma(position.text, position.at, position.after);
    return out.append(final ? kFinalSigma : kSmallSigma, origin);
  }
  out.append(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))), origin);
}

void append_folded(char32_t c, Origin origin, TextBuilder& out) {
  utf8proc_int32_t folded[8];
  int boundary = 0;
  const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), folded, std::size(folded),
                                             UTF8PROC_CASEFOLD, &boundary);
  for (utf8proc_ssize_t i = 0; i < count; ++i) out.append(static_cast<char32_t>(folded[i]), origin);
}

}  // namespace

bool is_line_break(char32_t c) {
  return (c >= 10 && c <= 13) || (c >= 28 && c <= 30) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

bool is_alpha(char32_t c) {
  const auto kind = category(c);
  return kind >= Category::kLu && kind <= Category::kLo;
}

bool is_decimal(char32_t c) { return category(c) == Category::kNd; }
bool is_digit(char32_t c) { return is_decimal(c) || in_ranges(kDigitsNotDecimal, c); }

bool is_numeric(char32_t c) {
  const auto kind = category(c);
  return (kind >= Category::kNd && kind <= Category::kNo) || in_ranges(kNumericLetters, c);
}

bool is_upper(char32_t c) {
  if (category(c) == Category::kLu) return true;
  return c > 0x7F && utf8proc_isupper(static_cast<utf8proc_int32_t>(c)) != 0 && !is_title(c);
}

bool is_lower(char32_t c) {
  if (category(c) == Category::kLl || c == 0xAA || c == 0xBA) return true;
  return c > 0x7F && utf8proc_islower(static_cast<utf8proc_int32_t>(c)) != 0 && !is_title(c);
}

bool is_title(char32_t c) { return category(c) == Category::kLt; }

bool is_printable(char32_t c) {
  if (c == ' ') return true;
  switch (category(c)) {
    case Category::kCc:
    case Category::kCf:
    case Category::kCs:
    case Category::kCo:
    case Category::kCn:
    case Category::kZl:
    case Category::kZp:
    case Category::kZs:
      return false;
    default:
      return true;
  }
}

bool is_word(char32_t c) { return c == '_' || is_alphanumeric(c); }

bool is_identifier_start(char32_t c) {
  if (c < 0x80) return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return is_alpha(c) || category(c) == Category::kNl;
}

bool is_identifier_part(char32_t c) {
  if (is_identifier_start(c) || (c >= '0' && c <= '9')) return true;
  const auto kind = category(c);
  return c >= 0x80 &&
         (kind == Category::kMn || kind == Category::kMc || kind == Category::kNd || kind == Category::kPc);
}

void map_case(const Text& text, Case how, TextBuilder& out, WorkMeter& meter) {
  bool previous_cased = false;
  size_t at = 0;
  text.for_each_run(0, text.bytes.size(), [&](size_t, size_t end, Origin origin) {
    while (at < end && !meter.spent()) {
      const size_t begin = at;
      const char32_t c = next_code_point(text.bytes, at);
      const Position position{text.bytes, begin, at};
      const bool raise = how == Case::kUpper || (how == Case::kSwap && is_lower(c));
      if (raise) {
        append_upper(c, origin, out);
      } else if (how == Case::kFold) {
        append_folded(c, origin, out);
      } else if (how == Case::kSwap && !is_upper(c)) {
        out.append(c, origin);
      } else if ((how == Case::kTitle && !previous_cased) || (how == Case::kCapitalize && begin == 0)) {
        append_title(c, origin, out);
      } else {
        append_lower(c, position, origin, out);
      }
      previous_cased = is_cased(c);
    }
  });
}

void map_word(const Text& text, size_t begin, size_t end, TextBuilder& out, WorkMeter& meter) {
  if (begin == end) return;
  size_t at = begin;
  append_upper(next_code_point(text.bytes, at), text.origin_at(begin), out);
  // The rest is a string of its own to Python, which matters to a sigma.
  const size_t rest_begin = at;
  const std::string_view rest = std::string_view(text.bytes).substr(rest_begin, end - rest_begin);
  for (size_t from = 0; from < rest.size() && !meter.spent();) {
    size_t after = from;
    const char32_t c = next_code_point(rest, after);
    append_lower(c, Position{rest, from, after}, text.origin_at(rest_begin + from), out);
    from = after;
  }
}

}  // namespace quire::jinja
