#include "unicode/unicode.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

// Counts that tokenizers 0.23.3 itself gives (tools/generate_unicode_tables.py asks it the same questions).
TEST(Unicode, HasAsManyMembersAsTheLibrary) {
  int letters = 0, numbers = 0, spaces = 0, word = 0, lower = 0, unassigned = 0;
  for (char32_t c = 0; c < 0x110000; ++c) {
    const uint16_t bits = char_bits(c);
    letters += (bits & kLetter) != 0;
    numbers += (bits & kNumber) != 0;
    spaces += (bits & kSpace) != 0;
    word += (bits & kRegexWord) != 0;
    lower += category(c) == Category::kLl;
    unassigned += category(c) == Category::kCn;
  }
  EXPECT_EQ(letters, 141028);
  EXPECT_EQ(numbers, 1911);
  EXPECT_EQ(spaces, 25);
  EXPECT_EQ(word, 144671);
  EXPECT_EQ(lower, 2258);
  EXPECT_EQ(unassigned, 819533);
}

TEST(Unicode, KnowsSingleCharacters) {
  EXPECT_EQ(category(U'A'), Category::kLu);
  EXPECT_EQ(category(U'\u01C5'), Category::kLt);
  EXPECT_EQ(category(U'\u0301'), Category::kMn);
  EXPECT_EQ(category(U'\u4E2D'), Category::kLo);
  EXPECT_EQ(category(0x10FFFF), Category::kCn);
  EXPECT_EQ(category(0xD800), Category::kCs);
  EXPECT_EQ(category(0x31350), Category::kLo);  // Unicode 15
  EXPECT_TRUE(char_bits(0x31350) & kRecent);
  EXPECT_FALSE(char_bits(U'\u180E') & kSpace);
  EXPECT_TRUE(char_bits(0x85) & kSpace);
  EXPECT_TRUE(char_bits(U'\n') & kNewline);
  EXPECT_FALSE(char_bits(U'\v') & kNewline);
  EXPECT_TRUE(char_bits(U'\u2162') & kNumeric);
}

}  // namespace
}  // namespace quire
