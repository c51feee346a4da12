#include "jinja/string_literal.h"

#include "unicode/utf8.h"

namespace quire::jinja {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

Result<char32_t> hex_escape(std::string_view text, size_t& at, size_t digits) {
  char32_t value = 0;
  for (size_t i = 0; i < digits; ++i, ++at) {
    const int digit = at < text.size() ? hex_digit(text[at]) : -1;
    if (digit < 0) return invalid_argument("a string has a truncated escape of a character");
    value = value << 4 | static_cast<char32_t>(digit);
  }
  if (value > 0x10FFFF) return invalid_argument("a string escapes a character beyond Unicode");
  if (value >= 0xD800 && value < 0xE000) return unsupported("a string escapes half a surrogate pair");
  return value;
}

// Appends what stands behind a backslash at `at`.
Status append_escape(std::string_view literal, size_t& at, std::string& out) {
  constexpr std::string_view kLetters = "\\'\"abfnrtv";
  constexpr std::string_view kMeant = "\\'\"\a\b\f\n\r\t\v";
  const char c = literal[at];
  if (const size_t letter = kLetters.find(c); letter != std::string_view::npos) {
    out.push_back(kMeant[letter]);
    ++at;
  } else if (c == '\n') {
    ++at;
  } else if (c == 'x' || c == 'u' || c == 'U') {
    ++at;
    QUIRE_ASSIGN_OR_RETURN(const char32_t value, hex_escape(literal, at, c == 'x' ? 2 : c == 'u' ? 4 : 8));
    append_utf8(value, &out);
  } else if (c == 'N' || (c >= '0' && c <= '7') || static_cast<unsigned char>(c) >= 0x80) {
    // Names and octal digits, and what jinja2 makes of a backslash before a character that is not ASCII.
    return unsupported("a string has a backslash before '" + std::string(literal.substr(at, utf8_length(c))) +
                       "', which quire does not know");
  } else {
    out.push_back('\\');
    out.push_back(literal[at++]);
  }
  return Status();
}

}  // namespace

std::string normalize_line_breaks(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r') {
      out.push_back(text[i]);
      continue;
    }
    out.push_back('\n');
    if (i + 1 < text.size() && text[i + 1] == '\n') ++i;
  }
  return out;
}

Result<std::string> unescape_string_literal(std::string_view literal) {
  std::string out;
  size_t at = 0;
  while (at < literal.size()) {
    if (literal[at] != '\\') {
      out.push_back(literal[at++]);
      continue;
    }
    if (++at == literal.size()) return invalid_argument("a string ends in a backslash");
    QUIRE_RETURN_IF_ERROR(append_escape(literal, at, out));
  }
  return out;
}

}  // namespace quire::jinja
