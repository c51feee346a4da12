#include "cli/run_prompt.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

TEST(RunPrompt, PutsTheInputBehindTheArgument) {
  EXPECT_EQ(joined_prompt("Summarise:", "text\n"), "Summarise:\n\ntext");
  EXPECT_EQ(joined_prompt("Summarise:", "text\r\n"), "Summarise:\n\ntext");
  EXPECT_EQ(joined_prompt("", "a\nb\n\n"), "a\nb\n");
  EXPECT_EQ(joined_prompt("alone", ""), "alone");
  EXPECT_EQ(joined_prompt("alone", "\n"), "alone");
}

}  // namespace
}  // namespace quire
