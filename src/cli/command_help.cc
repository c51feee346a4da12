#include <cstdio>

#include "cli/commands.h"
#include "cli/help.h"

namespace quire {

Status command_help_page(const Invocation& invocation) {
  if (!invocation.text) {
    std::fputs(overview_help().c_str(), stdout);
    return {};
  }
  const CommandRow* row = find_command(*invocation.text);
  if (row == nullptr) return unknown_command(*invocation.text);
  std::fputs(command_help(*row).c_str(), stdout);
  return {};
}

Status command_version(const Invocation&) {
  std::puts(version_text().c_str());
  return {};
}

}  // namespace quire
