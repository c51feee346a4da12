#include "cli/multiline.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace quire {
namespace {

// The message of lines of which only the last completes it.
std::string message(std::initializer_list<std::string_view> lines) {
  MessageLines all;
  size_t left = lines.size();
  for (const std::string_view line : lines) EXPECT_EQ(all.add(line), --left == 0) << line;
  const std::string text = all.take();
  EXPECT_FALSE(all.begun());
  return text;
}

TEST(MessageLines, TakesALineForAMessage) {
  EXPECT_EQ(message({"hello"}), "hello");
  EXPECT_EQ(message({""}), "");
  EXPECT_EQ(message({"say \"\"\" here"}), "say \"\"\" here");
}

TEST(MessageLines, GoesOnAfterABackslash) {
  EXPECT_EQ(message({"one \\", "two\\", "three"}), "one \ntwo\nthree");
  EXPECT_EQ(message({"\\", "x"}), "\nx");
}

TEST(MessageLines, ReadsQuotedLines) {
  EXPECT_EQ(message({R"(""")", "one", "", "two\\", R"(""")"}), "one\n\ntwo\\");
  EXPECT_EQ(message({R"("""one)", R"(two""")"}), "one\ntwo");
  EXPECT_EQ(message({R"("""one""")"}), "one");
  EXPECT_EQ(message({R"(  """one)", R"(two""" and more)"}), "one\ntwo and more");
}

TEST(MessageLines, TakesAPasteForWhatItHolds) {
  EXPECT_EQ(message({"one\ntwo\n\nthree"}), "one\ntwo\n\nthree");
  EXPECT_EQ(message({"\"\"\"one\ntwo\"\"\""}), "one\ntwo");
  EXPECT_EQ(message({"one\ntwo\\", "three"}), "one\ntwo\nthree");
}

}  // namespace
}  // namespace quire
