#include "cli/chat_command.h"

#include <algorithm>
#include <array>
#include <vector>

#include "cli/suggestion.h"
#include "cli/terminal.h"

namespace quire {
namespace {

struct Row {
  std::string_view name;
  ChatVerb verb;
  std::string_view argument;
  std::string_view help;
};

constexpr std::array<Row, 7> kRows = {{
    {"help", ChatVerb::kHelp, "", "this list"},
    {"clear", ChatVerb::kClear, "", "forget the conversation, but for the system message"},
    {"system", ChatVerb::kSystem, "[TEXT]", "set the system message, or show it; \"\" removes it"},
    {"set", ChatVerb::kSet, "[NAME VALUE]",
     "set an option of the answers, or list them; VALUE default: as at the start"},
    {"save", ChatVerb::kSave, "FILE", "write the conversation, as the API's messages"},
    {"load", ChatVerb::kLoad, "FILE", "go on with such a conversation"},
    {"bye", ChatVerb::kBye, "", "leave, as Ctrl-D does"},
}};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

bool is_chat_option(const OptionRow& row) { return row.in_request && (row.commands & kRun) != 0; }

std::vector<std::string_view> chat_option_names() {
  std::vector<std::string_view> names;
  for (const OptionRow& row : option_table()) {
    if (is_chat_option(row)) names.push_back(row.name);
  }
  return names;
}

// What a switch is set to is written as in JSON.
std::string_view switch_text(std::string_view text) {
  if (text == "true" || text == "on") return "1";
  return text == "false" || text == "off" ? "0" : text;
}

void copy_option(const OptionRow& row, const Options& from, Options& to) {
  std::visit([&](auto member) { to.*member = from.*member; }, row.member);
}

std::string shown(const Options& options, const OptionRow& row) {
  const std::string value = value_text(options, row);
  return value.empty() ? default_text(row).empty() ? "none" : default_text(row) : value;
}

}  // namespace

Result<ChatCommand> parse_chat_command(std::string_view text) {
  ChatCommand command{.verb = ChatVerb::kMessage, .argument = std::string(text)};
  if (!text.starts_with('/')) return command;
  const size_t end = std::min(text.find_first_of(" \t\n"), text.size());
  const std::string_view name = text.substr(1, end - 1);
  if (name.empty() || !std::ranges::all_of(name, is_letter)) return command;
  command.argument = trimmed(text.substr(end));
  std::vector<std::string_view> names;
  for (const Row& row : kRows) {
    names.push_back(row.name);
    if (row.name != name && !(row.verb == ChatVerb::kBye && (name == "exit" || name == "quit"))) continue;
    command.verb = row.verb;
    if (row.argument.empty() && !command.argument.empty()) {
      return invalid_argument("/" + std::string(row.name) + " takes nothing behind it");
    }
    if (!row.argument.empty() && row.argument[0] != '[' && command.argument.empty()) {
      return invalid_argument("/" + std::string(row.name) + " takes the name of a file: /" + std::string(row.name) +
                              " chat.json");
    }
    return command;
  }
  return invalid_argument("/" + std::string(name) + " is no command" + did_you_mean(name, names, "/") +
                          " (/help lists them; a message may begin with a blank and then \"/\")");
}

std::string chat_help() {
  std::vector<std::vector<std::string>> rows;
  for (const Row& row : kRows) {
    rows.push_back({"/" + std::string(row.name) + (row.argument.empty() ? "" : " ") + std::string(row.argument),
                    std::string(row.help)});
  }
  rows.push_back({R"(""" ... """)", "a message of several lines; so does \\ at the end of a line, and a paste"});
  rows.push_back({"Up, Down, Ctrl-R", "what was said before"});
  rows.push_back({"Ctrl-C", "stops an answer, or forgets the line"});
  return table_text(rows, "", "ll");
}

Result<std::string> set_chat_option(std::string_view argument, const Options& at_start, Options& options) {
  const size_t end = std::min(argument.find_first_of(" \t\n="), argument.size());
  std::string name(argument.substr(0, end));
  std::ranges::replace(name, '_', '-');
  const OptionRow* row = find_option(name);
  if (row == nullptr || !is_chat_option(*row)) {
    const std::vector<std::string_view> names = chat_option_names();
    return invalid_argument("\"" + name + "\" is no option of the answers" + did_you_mean(name, names) +
                            " (/set lists them)");
  }
  std::string_view value = trimmed(argument.substr(end));
  if (value.starts_with('=')) value = trimmed(value.substr(1));
  if (value.empty()) return name + "  " + shown(options, *row);
  if (value == "default") {
    copy_option(*row, at_start, options);
    return name + "  " + shown(options, *row);
  }
  if (is_switch(*row)) value = switch_text(value);
  QUIRE_ASSIGN_OR_RETURN(const OptionValue parsed, parse_option(*row, value, name));
  QUIRE_RETURN_IF_ERROR(set_option(options, *row, parsed, name));
  return name + "  " + shown(options, *row);
}

std::string chat_options(const Options& options) {
  std::vector<std::vector<std::string>> rows;
  for (const OptionRow& row : option_table()) {
    if (is_chat_option(row)) rows.push_back({std::string(row.name), shown(options, row)});
  }
  return table_text(rows, "", "ll");
}

}  // namespace quire
