// What --help and docs/options.md say, generated from the command and option tables.
#pragma once

#include <string>

#include "cli/commands.h"

namespace quire {

std::string version_text();  // "quire 0.1.0"
std::string overview_help();
std::string command_help(const CommandRow& row);
std::string options_markdown();  // docs/options.md

}  // namespace quire
