// Code points in valid UTF-8, as Python counts and cuts strings. Text is checked once, where it enters (is_valid_utf8
// of unicode/utf8.h); positions are bytes unless a name says code points.
#pragma once

#include <cstddef>
#include <string_view>

#include "unicode/utf8.h"

namespace quire::jinja {

// The code point that begins at `at`; moves `at` behind it.
inline char32_t next_code_point(std::string_view text, size_t& at) {
  const char* const begin = text.data() + at;
  at += utf8_length(*begin);
  return utf8_decode(begin);
}

// Start of the code point that ends before `at`, which must not be 0.
inline size_t previous_boundary(std::string_view text, size_t at) {
  do {
    --at;
  } while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
  return at;
}

inline size_t count_code_points(std::string_view text) {
  size_t count = 0;
  for (const char byte : text) count += (static_cast<unsigned char>(byte) & 0xC0) != 0x80 ? 1 : 0;
  return count;
}

// Byte position of the code point number `index`, at most text.size().
inline size_t byte_offset(std::string_view text, size_t index) {
  size_t at = 0;
  for (; index > 0 && at < text.size(); --index) at += utf8_length(text[at]);
  return at;
}

}  // namespace quire::jinja
