#include "cli/command_words.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

using Words = std::vector<std::string>;

std::string says(const Words& words) { return split_command_line(words).status().message(); }

TEST(CommandWords, AreSplitAtTwoDashes) {
  const CommandWords words = split_command_line({"run", "-m", "x", "--", "--top-k", "--", "y"}).value();
  EXPECT_EQ(words.command, "run");
  EXPECT_EQ(words.arguments, (Words{"-m", "x"}));
  EXPECT_EQ(words.literal, (Words{"--top-k", "--", "y"}));
}

TEST(CommandWords, KnowHelpAndVersion) {
  EXPECT_TRUE(split_command_line({"--help"})->wants_help);
  EXPECT_TRUE(split_command_line({"run", "x", "-h"})->wants_help);
  EXPECT_TRUE(split_command_line({"-V"})->wants_version);
  EXPECT_TRUE(split_command_line({"--version"})->wants_version);
  EXPECT_EQ(split_command_line({})->command, "");
  EXPECT_FALSE(split_command_line({"run", "--", "--help"})->wants_help);
}

TEST(CommandWords, AFlagsValueIsNoFlag) {
  EXPECT_TRUE(
      split_command_line({"run", "--system", "--top", "--top-p", "-1", "-m", "-x", "-mfile", "--seed=-5"}).ok());
}

TEST(CommandWords, NameTheFirstUnknownFlag) {
  EXPECT_NE(says({"run", "--nonsense", "two", "words", "more"}).find("--nonsense is not an option of quire run"),
            std::string::npos);
  EXPECT_NE(says({"run", "--max-token", "5", "x"}).find("did you mean --max-tokens?"), std::string::npos);
  EXPECT_NE(says({"run", "--max_tokens=5", "x"}).find("--max_tokens is not"), std::string::npos);
  EXPECT_NE(says({"inspect", "--temperature", "1"}).find("it is one of run and serve"), std::string::npos);
  EXPECT_NE(says({"run", "-x"}).find("-x is not an option"), std::string::npos);
  EXPECT_NE(says({"run", "-5 degrees"}).find("put -- before a text"), std::string::npos);
  EXPECT_NE(says({"--port", "1", "serve"}).find("stands before a command"), std::string::npos);
}

TEST(CommandWords, NameAnUnknownCommand) {
  EXPECT_NE(says({"rnu"}).find("did you mean run?"), std::string::npos);
  EXPECT_NE(says({"nonsense"}).find("\"nonsense\" is not a command"), std::string::npos);
}

}  // namespace
}  // namespace quire
