// The words of a command line, before their values are read: which command, and whether it knows all flags. So that a mistyped
// flag is named before anything that follows from it. Pure functions, any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace quire {

inline constexpr std::string_view kOptionsPage = "options";  // writes docs/options.md; no command for people

struct CommandWords {
  std::string command = {};                 // empty: none was given
  std::vector<std::string> arguments = {};  // of the command, up to "--"
  std::vector<std::string> literal = {};    // behind "--": no flags, whatever they look like
  bool wants_help = false;                  // -h, --help
  bool wants_version = false;               // -V, --version, without a command
};

// Fails on an unknown command, and on the first flag that the command does not have.
Result<CommandWords> split_command_line(const std::vector<std::string>& words);

}  // namespace quire
