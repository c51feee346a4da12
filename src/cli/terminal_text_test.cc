#include "cli/terminal_text.h"

#include <gtest/gtest.h>

#include <vector>

#include "unicode/display_width.h"

namespace quire {
namespace {

// Whole, and byte by byte as far as UTF-8 lets: what is printed must not depend on where an answer is cut.
std::string shown(std::string_view text, int columns, bool colour = false) {
  TerminalText whole(colour);
  std::string at_once = whole.push(text, columns);
  at_once += whole.finish(columns);
  TerminalText parts(colour);
  std::string piecewise;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = begin + 1;
    while (end < text.size() && (text[end] & 0xC0) == 0x80) ++end;
    piecewise += parts.push(text.substr(begin, end - begin), columns);
    begin = end;
  }
  piecewise += parts.finish(columns);
  EXPECT_EQ(at_once, piecewise);
  return at_once;
}

TEST(TerminalText, WrapsAtWords) {
  EXPECT_EQ(shown("one two three four", 9), "one two\nthree\nfour\n");
  EXPECT_EQ(shown("one two\n", 20), "one two\n");
  EXPECT_EQ(shown("one\n\ntwo", 20), "one\n\ntwo\n");
  EXPECT_EQ(shown("exactly8 x", 8), "exactly8\nx\n");
  EXPECT_EQ(shown("    indented text", 13), "    indented\ntext\n");
  EXPECT_EQ(shown("", 20), "");
  EXPECT_EQ(shown("trailing   \nspaces ", 20), "trailing\nspaces\n");
}

TEST(TerminalText, CutsWhatIsLongerThanALine) {
  EXPECT_EQ(shown("abcdefghijklmnopqrst", 8), "abcdefgh\nijklmnop\nqrst\n");
  EXPECT_EQ(shown("a bcdefghijklm", 8), "a\nbcdefghi\njklm\n");
}

TEST(TerminalText, CountsCellsNotBytes) {
  EXPECT_EQ(shown("häßlich über", 12), "häßlich über\n");
  EXPECT_EQ(shown("你好世界你好", 8), "你好世界\n你好\n");
  EXPECT_EQ(shown("你好世界。你", 9), "你好世\n界。你\n");
  EXPECT_EQ(shown("ok \U0001F600\U0001F600\U0001F600\U0001F600", 8), "ok \U0001F600\U0001F600\n\U0001F600\U0001F600\n");
  EXPECT_EQ(shown("aaaaaa e\u0301e\u0301e\u0301", 10), "aaaaaa e\u0301e\u0301e\u0301\n");
  const std::string family = "\U0001F468\u200D\U0001F469\u200D\U0001F467";
  EXPECT_EQ(shown("12345 " + family + " 12", 8), "12345 " + family + "\n12\n");
}

TEST(TerminalText, ExpandsTabs) { EXPECT_EQ(shown("a\tb\tc", 40), "a       b       c\n"); }

TEST(TerminalText, ShowsControlCharactersInsteadOfObeyingThem) {
  EXPECT_EQ(shown("a\x1b[2Jb\x07", 40), "a\uFFFD[2Jb\uFFFD\n");
  EXPECT_EQ(shown("a\u009B2J", 40), "a\uFFFD2J\n");
  EXPECT_EQ(shown("a\r\nb\rc", 40), "a\nbc\n");
}

TEST(TerminalText, LeavesCodeInItsLines) {
  const std::string code = "see:\n```python\nprint('a long line of code', 1)\n```\nand then on";
  EXPECT_EQ(shown(code, 10), "see:\n```python\nprint('a long line of code', 1)\n```\nand then\non\n");
  EXPECT_EQ(shown(code, 10, true),
            "see:\n\x1b[36m```python\x1b[0m\n\x1b[36mprint('a long line of code', 1)\x1b[0m\n\x1b[36m```\x1b[0m\nand "
            "then\non\n");
}

TEST(TerminalText, KnowsWhereCodeEnds) {
  EXPECT_EQ(shown("````\n```\nx\n````\ny", 40, true),
            "\x1b[36m````\x1b[0m\n\x1b[36m```\x1b[0m\n\x1b[36mx\x1b[0m\n\x1b[36m````\x1b[0m\ny\n");
  EXPECT_EQ(shown("```x``` is code", 40, true), "```x``` is code\n");
  EXPECT_EQ(shown("a ``` b", 40, true), "a ``` b\n");
  EXPECT_EQ(shown("```\nunfinished", 40, true), "\x1b[36m```\x1b[0m\n\x1b[36munfinished\x1b[0m\n");
  EXPECT_EQ(shown("```\n\n  x\n```\n", 40, true), "\x1b[36m```\x1b[0m\n\n\x1b[36m  x\x1b[0m\n\x1b[36m```\x1b[0m\n");
}

TEST(TerminalText, TakesANewWidthAtOnce) {
  TerminalText text(false);
  std::string out = text.push("one two three four ", 80);
  out += text.push("five six seven", 12);
  out += text.finish(12);
  EXPECT_EQ(out, "one two three\nfour five\nsix seven\n");  // "four" was not printed yet
}

TEST(TerminalText, NoLineIsWiderThanTheWindow) {
  const std::string text =
      "The quick 你好 brown \U0001F600 fox jumps-over-the-lazy-dog and e\u0301 more words\tafter. ";
  for (int columns = 8; columns < 60; ++columns) {
    const std::string out = shown(text + text, columns);
    for (size_t begin = 0; begin < out.size();) {
      const size_t end = out.find('\n', begin);
      ASSERT_NE(end, std::string::npos);
      EXPECT_LE(display_width(std::string_view(out).substr(begin, end - begin)), static_cast<size_t>(columns));
      begin = end + 1;
    }
  }
}

}  // namespace
}  // namespace quire
