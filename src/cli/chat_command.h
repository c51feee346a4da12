// The commands of a chat: "/set temperature 0.2". Pure functions, any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "options/options.h"

namespace quire {

enum class ChatVerb { kMessage, kHelp, kClear, kSystem, kSet, kSave, kLoad, kBye };

struct ChatCommand {
  ChatVerb verb = ChatVerb::kMessage;
  std::string argument;  // without blanks around it
};

// Reads what a person typed. A text that begins with "/" and a word of letters only is a command; "/usr/bin" is a message,
// as is everything that begins otherwise. Fails on an unknown command, with the nearest known one.
Result<ChatCommand> parse_chat_command(std::string_view text);

std::string chat_help();

// "/set" and what follows it: "NAME VALUE" sets an option of the generation, "NAME default" gives it back what it was at the
// start. Returns what was set, as a line.
Result<std::string> set_chat_option(std::string_view argument, const Options& at_start, Options& options);
// Those options with their values, one a line.
std::string chat_options(const Options& options);

}  // namespace quire
