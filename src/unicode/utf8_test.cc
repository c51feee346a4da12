#include "unicode/utf8.h"

#include <gtest/gtest.h>

#include <random>

namespace quire {
namespace {

TEST(Utf8, AcceptsTheFirstAndLastOfEachLength) {
  for (const char32_t c : {0x0u, 0x7Fu, 0x80u, 0x7FFu, 0x800u, 0xD7FFu, 0xE000u, 0xFFFFu, 0x10000u, 0x10FFFFu}) {
    std::string text;
    append_utf8(c, &text);
    EXPECT_TRUE(is_valid_utf8(text)) << std::hex << static_cast<uint32_t>(c);
    EXPECT_EQ(utf8_decode(text.data()), c);
    EXPECT_EQ(utf8_length(text[0]), text.size());
  }
}

// What Python's bytes.decode("utf-8", "replace") yields.
TEST(Utf8, ReplacesMaximalSubparts) {
  const std::string r(kReplacementCharacter);
  EXPECT_EQ(repair_utf8("a\x80z"), "a" + r + "z");
  EXPECT_EQ(repair_utf8("\xC0\xAF"), r + r);                  // overlong
  EXPECT_EQ(repair_utf8("\xE0\x80\xAF"), r + r + r);          // overlong
  EXPECT_EQ(repair_utf8("\xED\xA0\x80"), r + r + r);          // surrogate
  EXPECT_EQ(repair_utf8("\xF4\x90\x80\x80"), r + r + r + r);  // above U+10FFFF
  EXPECT_EQ(repair_utf8("\xF0\x9F\x98"), r);                  // cut short
  EXPECT_EQ(repair_utf8("\xF0\x9F\x98"
                        "A"),
            r + "A");
  EXPECT_EQ(repair_utf8("\xE4\xBD\xE4\xBD\xA0"), r + "\xE4\xBD\xA0");
  EXPECT_EQ(repair_utf8("\xF1\x80\x80\xE1\x80\xC2\x80"), r + r + "\xC2\x80");
  EXPECT_EQ(repair_utf8("\xFF\xFE"), r + r);
}

TEST(Utf8, ByteWisePolicyReplacesEachByte) {
  const std::string r(kReplacementCharacter);
  Utf8Repair repair(true);
  EXPECT_EQ(repair.push("\xF0\x9F\x98"
                        "A"),
            r + r + r + "A");
  EXPECT_EQ(repair.push("\xE4\xBD"), "");
  EXPECT_EQ(repair.finish(), r + r);
}

TEST(Utf8, StreamingEqualsWhole) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 rng(seed);
  const std::string_view units[] = {"a",    "\xC3\xA9", "\xE4\xBD\xA0", "\xF0\x9F\x98\x80",
                                    "\x80", "\xE4",     "\xF0\x9F",     "\xC3"};
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (int i = 0; i < 8; ++i) text += units[rng() % 8];
    for (const bool each_byte : {false, true}) {
      Utf8Repair whole(each_byte), parts(each_byte);
      std::string expected = whole.push(text);
      expected += whole.finish();
      std::string got;
      for (size_t at = 0; at < text.size();) {
        const size_t n = std::min<size_t>(1 + rng() % 3, text.size() - at);
        const std::string out = parts.push(text.substr(at, n));
        EXPECT_TRUE(is_valid_utf8(out));
        got += out;
        at += n;
      }
      got += parts.finish();
      ASSERT_EQ(got, expected);
    }
  }
}

}  // namespace
}  // namespace quire
