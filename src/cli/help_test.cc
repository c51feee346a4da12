#include "cli/help.h"

#include <gtest/gtest.h>

#include <set>

#include "cli/input.h"

namespace quire {
namespace {

TEST(OptionsPage, IsCurrent) {
  const Result<std::string> page = read_file(QUIRE_SOURCE_DIR "/docs/options.md", 1 << 20);
  ASSERT_TRUE(page.ok()) << page.status().message();
  EXPECT_EQ(*page, options_markdown()) << "write it anew: quire options > docs/options.md";
}

TEST(Help, ListsEveryOptionOfACommandInReadableLines) {
  for (const CommandRow& command : command_table()) {
    const std::string help = command_help(command);
    for (const OptionRow& option : option_table()) {
      if ((option.commands & command.command) == 0) continue;
      EXPECT_NE(help.find("--" + std::string(option.name)), std::string::npos) << command.name << " " << option.name;
    }
    for (size_t at = 0; at < help.size();) {
      const size_t end = help.find('\n', at);
      EXPECT_LE(end - at, 110u) << help.substr(at, end - at);
      at = end + 1;
    }
  }
}

TEST(Help, OverviewNamesEveryCommandOnce) {
  std::set<Command> commands;
  for (const CommandRow& command : command_table()) {
    EXPECT_TRUE(commands.insert(command.command).second);
    EXPECT_NE(overview_help().find("\n  " + std::string(command.name) + " "), std::string::npos);
  }
}

}  // namespace
}  // namespace quire
