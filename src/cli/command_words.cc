#include "cli/command_words.h"

#include "cli/commands.h"
#include "cli/suggestion.h"
#include "options/options.h"

namespace quire {
namespace {

// Of the commands that have an option: "run and serve".
std::string commands_with(const OptionRow& option) {
  std::vector<std::string_view> names;
  for (const CommandRow& row : command_table()) {
    if ((option.commands & row.command) != 0) names.push_back(row.name);
  }
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    text.append(i == 0 ? "" : i + 1 == names.size() ? " and " : ", ").append(names[i]);
  }
  return text;
}

Status unknown_flag(const CommandRow& row, const std::string& flag, std::string_view name) {
  std::string message = flag + " is not an option of quire " + std::string(row.name);
  if (const OptionRow* elsewhere = find_option(name)) {
    message += " (it is one of " + commands_with(*elsewhere) + ")";
  } else {
    std::vector<std::string_view> names = {"help"};
    for (const OptionRow& option : option_table()) {
      if ((option.commands & row.command) != 0) names.push_back(option.name);
    }
    message += did_you_mean(name, names, "--");
  }
  message += " (`quire " + std::string(row.name) + " --help` lists them";
  if (!row.text_name.empty() && !row.text_is_model) message += "; put -- before a text that begins with a dash";
  return invalid_argument(message + ")");
}

const OptionRow* find_flag(const CommandRow& row, std::string_view name, char short_name) {
  for (const OptionRow& option : option_table()) {
    if ((option.commands & row.command) == 0) continue;
    if (short_name != 0 ? option.short_name == short_name : option.name == name) return &option;
  }
  return nullptr;
}

// Looks at the words of a command in their order; a flag's value is passed over, whatever it looks like.
Status check_flags(const CommandRow& row, CommandWords& words) {
  for (size_t i = 0; i < words.arguments.size(); ++i) {
    const std::string& word = words.arguments[i];
    if (word == "-h" || word == "--help") {
      words.wants_help = true;
      continue;
    }
    if (!word.starts_with('-') || word == "-") continue;
    const bool is_long = word.starts_with("--");
    const size_t equals = is_long ? word.find('=') : std::string::npos;
    const std::string name = word.substr(is_long ? 2 : 1, equals == std::string::npos ? equals : equals - 2);
    const OptionRow* option = find_flag(row, name, is_long ? '\0' : word[1]);
    if (option == nullptr) return unknown_flag(row, word.substr(0, equals), name);
    const bool holds_value = is_long ? equals != std::string::npos : word.size() > 2;
    if (!is_switch(*option) && !holds_value) ++i;
  }
  return {};
}

}  // namespace

Result<CommandWords> split_command_line(const std::vector<std::string>& words) {
  CommandWords result;
  size_t at = 0;
  for (; at < words.size() && words[at].starts_with('-'); ++at) {
    if (words[at] == "-h" || words[at] == "--help") {
      result.wants_help = true;
    } else if (words[at] == "-V" || words[at] == "--version") {
      result.wants_version = true;
    } else {
      return invalid_argument(words[at] + " stands before a command; options go behind it (`quire --help`)");
    }
  }
  if (at == words.size() || result.wants_version) return result;
  result.command = words[at++];
  const CommandRow* row = find_command(result.command);
  if (row == nullptr && result.command != kOptionsPage) return unknown_command(result.command);
  bool literal = false;
  for (; at < words.size(); ++at) {
    if (!literal && words[at] == "--") {
      literal = true;
    } else {
      (literal ? result.literal : result.arguments).push_back(words[at]);
    }
  }
  if (row != nullptr) QUIRE_RETURN_IF_ERROR(check_flags(*row, result));
  return result;
}

}  // namespace quire
