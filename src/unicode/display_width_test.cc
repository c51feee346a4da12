#include "unicode/display_width.h"

#include <gtest/gtest.h>

#include <string>

namespace quire {
namespace {

// The cells are those of wcwidth (Python) for single code points, and of Unicode's emoji charts for sequences.
TEST(DisplayWidth, CountsCells) {
  EXPECT_EQ(display_width(""), 0u);
  EXPECT_EQ(display_width("plain"), 5u);
  EXPECT_EQ(display_width("h\u00E4"), 2u);
  EXPECT_EQ(display_width("ha\u0308"), 2u);
  EXPECT_EQ(display_width("\u4F60\u597D"), 4u);
  EXPECT_EQ(display_width("\uD55C\uAD6D"), 4u);
  EXPECT_EQ(display_width("\uFF8A\uFF9F"), 2u);        // half-width katakana with its mark
  EXPECT_EQ(display_width("\u0E01\u0E33"), 2u);        // a vowel of Thai with a cell of its own
  EXPECT_EQ(display_width("\u1112\u1161\u11AB"), 2u);  // a syllable of Korean in three parts
  EXPECT_EQ(display_width("\u200B"), 0u);
}

TEST(DisplayWidth, TakesAnEmojiForOneCharacter) {
  EXPECT_EQ(display_width("\U0001F600"), 2u);
  EXPECT_EQ(display_width("\u2764\uFE0F"), 2u);                                // heart as emoji
  EXPECT_EQ(display_width("\U0001F44D\U0001F3FD"), 2u);                        // thumb with skin tone
  EXPECT_EQ(display_width("\U0001F468\u200D\U0001F469\u200D\U0001F467"), 2u);  // family
  EXPECT_EQ(display_width("\U0001F1E9\U0001F1EA"), 2u);                        // flag
  EXPECT_EQ(display_width("\U0001F1E9\U0001F1EA\U0001F1EB\U0001F1F7"), 4u);    // two of them
  EXPECT_EQ(first_cluster("\U0001F468\u200D\U0001F469x").bytes, std::string("\U0001F468\u200D\U0001F469").size());
}

TEST(DisplayWidth, GoesThroughAnyBytes) {
  EXPECT_EQ(display_width("a\xFF\xFE"), 3u);
  EXPECT_EQ(display_width("\xE2\x82"), 1u);
  EXPECT_EQ(first_cluster("\n\n").bytes, 1u);
  EXPECT_EQ(first_cluster("\r\n").bytes, 2u);
  EXPECT_EQ(first_cluster("\n").cells, 0);
}

}  // namespace
}  // namespace quire
