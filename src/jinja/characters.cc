#include "jinja/characters.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "jinja/character_tables.h"
#include "unicode/unicode.h"

namespace quire::jinja {
namespace {

constexpr char32_t kCapitalSigma = 0x3A3, kSmallSigma = 0x3C3, kFinalSigma = 0x3C2;
constexpr char32_t kCapitalIWithDot = 0x130, kCombiningDot = 0x307;

// Greek capitals and small letters with an iota below, which are spelled out in upper case: U+1F80 to U+1FAF, three rows
// of 8 small letters and then their 8 title cases.
bool has_iota_below(char32_t c) { return c >= 0x1F80 && c <= 0x1FAF; }

SpecialCase iota_case(char32_t c) {
  constexpr char32_t kCapitals[] = {0x1F08, 0x1F28, 0x1F68}, kIota = 0x399;
  return {c, {kCapitals[(c - 0x1F80) / 16] + (c & 7), kIota}, {c | 8}};
}

std::optional<SpecialCase> find_special(char32_t c) {
  if (has_iota_below(c)) return iota_case(c);
  const auto at = std::lower_bound(std::begin(kSpecialCases), std::end(kSpecialCases), c,
                                   [](const SpecialCase& row, char32_t value) { return row.from < value; });
  return at != std::end(kSpecialCases) && at->from == c ? std::optional<SpecialCase>(*at) : std::nullopt;
}

void append_all(const char32_t (&mapped)[3], Origin origin, TextBuilder& out) {
  for (const char32_t c : mapped) {
    if (c != 0) out.append(c, origin);
  }
}

void append_upper(char32_t c, Origin origin, TextBuilder& out) {
  if (const auto special = find_special(c)) return append_all(special->upper, origin, out);
  out.append(static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))), origin);
}

void append_title(char32_t c, Origin origin, TextBuilder& out) {
  if (const auto special = find_special(c)) return append_all(special->title, origin, out);
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

}  // namespace

bool is_line_break(char32_t c) {
  return (c >= 10 && c <= 13) || (c >= 28 && c <= 30) || c == 0x85 || c == 0x2028 || c == 0x2029;
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

void map_case(const Text& text, Case how, TextBuilder& out, WorkMeter& meter) {
  bool previous_cased = false;
  size_t at = 0;
  text.for_each_run(0, text.bytes.size(), [&](size_t, size_t end, Origin origin) {
    while (at < end && !meter.spent()) {
      const size_t begin = at;
      const char32_t c = next_code_point(text.bytes, at);
      const Position position{text.bytes, begin, at};
      if (how == Case::kUpper) {
        append_upper(c, origin, out);
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
