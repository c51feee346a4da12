// Properties of code points, as Hugging Face `tokenizers` 0.23 sees them (Unicode 16, with the exceptions its parts
// have; tools/generate_unicode_tables.py asks it).
//
// Constant tables, any thread. char_bits() is one load for ASCII and two for the rest.
#pragma once

#include <array>
#include <cstdint>

namespace quire {

// General categories in the order of the generated table.
enum class Category : uint8_t {
  kLu,
  kLl,
  kLt,
  kLm,
  kLo,
  kMn,
  kMc,
  kMe,
  kNd,
  kNl,
  kNo,
  kPc,
  kPd,
  kPs,
  kPe,
  kPi,
  kPf,
  kPo,
  kSm,
  kSc,
  kSk,
  kSo,
  kZs,
  kZl,
  kZp,
  kCc,
  kCf,
  kCs,
  kCo,
  kCn,
};

// Bits 0 to 4 of char_bits() are the Category; these are the rest.
inline constexpr uint16_t kCategoryMask = 0x1F;
inline constexpr uint16_t kRegexWord = 1 << 5;       // \w of a Split pattern
inline constexpr uint16_t kWordNeighbour = 1 << 6;   // keeps a single_word added token from matching
inline constexpr uint16_t kNumeric = 1 << 7;         // isolated by the Digits pre-tokenizer
inline constexpr uint16_t kPunctuationBit = 1 << 8;  // isolated by the Punctuation pre-tokenizer
inline constexpr uint16_t kReorders = 1 << 9;        // has a combining class for the normalizer
inline constexpr uint16_t kRecent = 1 << 10;         // another category than in Unicode 14, PCRE2 10.42's
inline constexpr uint16_t kLetter = 1 << 11;         // \p{L}
inline constexpr uint16_t kNumber = 1 << 12;         // \p{N}
inline constexpr uint16_t kSpace = 1 << 13;          // \s: White_Space
inline constexpr uint16_t kNewline = 1 << 14;        // CR and LF

namespace internal {
// Two levels: the page of a block of 128 code points, then bits within the page.
inline constexpr int kUnicodePageBits = 7;
inline constexpr int kUnicodePages = 272;
inline constexpr int kUnicodeBlocks = 0x110000 >> kUnicodePageBits;
struct UnicodeTable {
  std::array<uint16_t, kUnicodeBlocks> page_of_block{};
  std::array<std::array<uint16_t, 1 << kUnicodePageBits>, kUnicodePages> pages{};
};
extern const UnicodeTable kUnicodeTable;
}  // namespace internal

// `c` is at most U+10FFFF.
inline uint16_t char_bits(char32_t c) {
  const auto& table = internal::kUnicodeTable;
  return table.pages[table.page_of_block[c >> internal::kUnicodePageBits]][c & ((1 << internal::kUnicodePageBits) - 1)];
}

inline Category category(char32_t c) { return static_cast<Category>(char_bits(c) & kCategoryMask); }

}  // namespace quire
