// UTF-8: decoding, validation, repair.
//
// Ill-formed input becomes U+FFFD, one for each maximal prefix of a well-formed sequence (Unicode 15, section 3.9,
// "substitution of maximal subparts"), which is what Rust's from_utf8_lossy and Python's errors="replace" do.
// Pure functions, any thread; Utf8Repair: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace quire {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

struct Utf8Step {
  enum class Kind {
    kValid,       // `code_point` in `length` bytes
    kIllFormed,   // `length` bytes that no continuation makes a code point
    kUnfinished,  // the text ends after `length` bytes of what may become one
  };
  Kind kind = Kind::kValid;
  uint32_t length = 0;
  char32_t code_point = 0;
};

// The first step through `text`, which is not empty.
Utf8Step utf8_step(std::string_view text);

bool is_valid_utf8(std::string_view text);
// The same with an error that says at which byte of the text called `name` it is not.
Status check_utf8(std::string_view name, std::string_view text);

// `text` with everything ill-formed replaced.
std::string repair_utf8(std::string_view text);

void append_utf8(char32_t code_point, std::string* out);

// Bytes of the sequence that `lead` begins. For valid text only.
inline uint32_t utf8_length(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

// The code point at `p`. For valid text only.
inline char32_t utf8_decode(const char* p) {
  const auto byte = [p](int i) { return static_cast<char32_t>(static_cast<unsigned char>(p[i])); };
  switch (utf8_length(*p)) {
    case 1:
      return byte(0);
    case 2:
      return (byte(0) & 0x1F) << 6 | (byte(1) & 0x3F);
    case 3:
      return (byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    default:
      return (byte(0) & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
  }
}

// Walking valid text by code points; positions are bytes unless a name says otherwise.

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

// Repairs a text that arrives in parts.
class Utf8Repair {
 public:
  // With `each_byte`, an ill-formed sequence becomes one U+FFFD a byte, not one in all.
  explicit Utf8Repair(bool each_byte = false) : each_byte_(each_byte) {}

  // What of the text so far is final and was not returned before.
  std::string push(std::string_view bytes);
  std::string finish();

 private:
  void replace(uint32_t length, std::string* out) const;

  bool each_byte_;
  std::string held_;  // an unfinished code point
};

}  // namespace quire
