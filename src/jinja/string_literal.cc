#include "jinja/string_literal.h"

#include <cstdio>

#include "unicode/utf8.h"

namespace quire::jinja {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The character of \a, \n and the like; -1 for letters that mean nothing.
int simple_escape(char c) {
  switch (c) {
    case '\\':
    case '\'':
    case '"':
      return c;
    case 'a':
      return '\a';
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'v':
      return '\v';
    default:
      return -1;
  }
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

// A backslash before a character beyond ASCII keeps both, the character as an escape: jinja2 turns such
// characters into escapes first, and the backslash then escapes that escape.
void append_escaped_character(std::string_view text, size_t& at, std::string& out) {
  const char32_t c = next_code_point(text, at);
  char escape[16];
  const char* format = c <= 0xFF ? "\\x%02x" : c <= 0xFFFF ? "\\u%04x" : "\\U%08x";
  std::snprintf(escape, sizeof escape, format, static_cast<unsigned>(c));
  out += escape;
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
    const char c = literal[at];
    if (const int simple = simple_escape(c); simple >= 0) {
      out.push_back(static_cast<char>(simple));
      ++at;
    } else if (c == '\n') {
      ++at;
    } else if (c >= '0' && c <= '7') {
      char32_t value = 0;
      for (int i = 0; i < 3 && at < literal.size() && literal[at] >= '0' && literal[at] <= '7'; ++i, ++at) {
        value = value * 8 + static_cast<char32_t>(literal[at] - '0');
      }
      append_utf8(value, &out);
    } else if (c == 'x' || c == 'u' || c == 'U') {
      ++at;
      QUIRE_ASSIGN_OR_RETURN(const char32_t value, hex_escape(literal, at, c == 'x' ? 2 : c == 'u' ? 4 : 8));
      append_utf8(value, &out);
    } else if (c == 'N') {
      return unsupported("a string names a character with \\N");
    } else if (static_cast<unsigned char>(c) >= 0x80) {
      append_escaped_character(literal, at, out);
    } else {
      out.push_back('\\');
      out.push_back(literal[at++]);
    }
  }
  return out;
}

}  // namespace quire::jinja
