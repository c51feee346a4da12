#include "cli/terminal.h"
#include "base/units.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

TEST(Terminal, WritesNumbersForPeople) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(999), "999 B");
  EXPECT_EQ(bytes_text(1000), "1.0 kB");
  EXPECT_EQ(bytes_text(98362432), "98.4 MB");
  EXPECT_EQ(bytes_text(491400064), "491 MB");
  EXPECT_EQ(bytes_text(999999999), "1.0 GB");
  EXPECT_EQ(count_text(0), "0");
  EXPECT_EQ(count_text(999), "999");
  EXPECT_EQ(count_text(49152), "49,152");
  EXPECT_EQ(count_text(-1234567), "-1,234,567");
  EXPECT_EQ(counted(1, "token"), "1 token");
  EXPECT_EQ(counted(1000, "token"), "1,000 tokens");
}

TEST(Terminal, AlignsColumnsByCharacters) {
  EXPECT_EQ(table_text({{"a", "1", "x"}, {"ünf", "22", "yy"}}, " ", "lrl"), " a     1  x\n ünf  22  yy\n");
  EXPECT_EQ(table_text({{"你好", "1"}, {"abcde", "2"}}, "", "ll"), "你好   1\nabcde  2\n");
  EXPECT_EQ(table_text({{"a", "1"}, {"b", ""}}), "a  1\nb\n");
}

TEST(Terminal, ShowsAnyBytesOnOneLine) {
  EXPECT_EQ(visible_text("a\n\tb\x01"), "a\\n\\tb\\x01");
  EXPECT_EQ(visible_text("\xE2\x82\xAC"), "\xE2\x82\xAC");
  EXPECT_EQ(visible_text("\xE2\x82"), "\\xE2\\x82");
}

}  // namespace
}  // namespace quire
