#include "cli/help.h"

#include <algorithm>
#include <vector>

namespace quire {
namespace {

constexpr size_t kLineWidth = 100;
constexpr size_t kHelpColumn = 30;

std::string flag_text(const OptionRow& row) {
  std::string text = row.short_name != 0 ? std::string("-") + row.short_name + ", " : std::string();
  text.append("--").append(row.name);
  if (!row.value_name.empty()) text.append(" ").append(row.value_name);
  return text;
}

// Help, range, default and other places to set it, as one sentence-like line.
std::string description(const OptionRow& row) {
  std::string text(row.help);
  if (const std::string range = range_text(row); !range.empty()) text.append(" (").append(range).append(")");
  if (const std::string value = default_text(row); !value.empty()) text.append(" [").append(value).append("]");
  return text;
}

void append_wrapped(std::string& out, const std::string& text, size_t indent) {
  size_t column = indent;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    if (column > indent && column + 1 + (end - at) > kLineWidth) {
      out.append("\n").append(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out.append(text, at, end - at);
    column += end - at;
    at = end + 1;
  }
  out += '\n';
}

void append_entry(std::string& out, const std::string& name, const std::string& text) {
  out.append("  ").append(name);
  const size_t column = name.size() + 2;
  if (column + 2 > kHelpColumn) {
    out.append("\n").append(kHelpColumn, ' ');
  } else {
    out.append(kHelpColumn - column, ' ');
  }
  append_wrapped(out, text, kHelpColumn);
}

std::vector<const OptionRow*> options_of(uint32_t commands) {
  std::vector<const OptionRow*> rows;
  for (const OptionRow& row : option_table()) {
    if ((row.commands & commands) != 0) rows.push_back(&row);
  }
  return rows;
}

template <typename Filter>
void append_names(std::string& out, const char* lead, Command command, Filter&& name_of) {
  std::string names;
  for (const OptionRow* row : options_of(command)) {
    const std::string name = name_of(*row);
    if (!name.empty()) names.append(names.empty() ? "" : ", ").append(name);
  }
  if (names.empty()) return;
  out.append("\n");
  append_wrapped(out, lead + names + ".", 0);
}

// A bar ends the cell of a Markdown table.
std::string escaped_cell(std::string_view text) {
  std::string out;
  for (const char c : text) out.append(c == '|' ? "\\" : "").append(1, c);
  return out;
}

}  // namespace

std::string overview_help() {
  std::string out =
      "quire runs large language models on ordinary CPUs.\n\n"
      "usage: quire COMMAND [OPTIONS]\n\n"
      "Commands:\n";
  for (const CommandRow& row : command_table()) append_entry(out, std::string(row.name), std::string(row.summary));
  out += "\nOptions:\n";
  append_entry(out, "-h, --help", "this text, or that of a command: quire run --help");
  append_entry(out, "-V, --version", "version of the program");
  append_entry(out, "--", "what follows is text, even where it begins with a dash");
  out += "\nExit codes: 0 done; 2 not done, and a message says why; 130 stopped by Ctrl-C or SIGTERM.\n";
  out += "\nTo begin: quire run \"Why is the sky blue?\"\n";
  return out;
}

std::string command_help(const CommandRow& row) {
  std::string out = "usage: quire " + std::string(row.name) + " [OPTIONS]";
  if (!row.text_name.empty()) out.append(" ").append(row.text_name);
  out.append("\n\n").append(row.summary).append("\n\n").append(row.details).append("\n");
  std::string_view section;
  for (const OptionRow* option : options_of(row.command)) {
    if (option->section != section) out.append("\n").append(option->section).append(" (defaults in brackets):\n");
    section = option->section;
    append_entry(out, flag_text(*option), description(*option));
  }
  append_names(out, "Keys of a JSON request: ", row.command,
               [](const OptionRow& option) { return option.in_request ? json_key(option) : std::string(); });
  append_names(out, "Set from the environment, where no flag is given: ", row.command, [](const OptionRow& option) {
    return option.in_environment ? environment_name(option) : std::string();
  });
  return out;
}

std::string options_markdown() {
  std::string out =
      "# Options\n\n"
      "Written by `quire options` from the options table (`src/options/`); a test holds it current.\n"
      "Precedence: key of a JSON request, flag, environment variable, default. Unknown options and keys are errors.\n";
  const auto code = [](const std::string& text) { return text.empty() ? "" : "`" + text + "`"; };
  std::string_view section;
  for (const OptionRow& row : option_table()) {
    if (row.section != section) {
      out.append("\n## ").append(row.section).append("\n\n");
      out +=
          "| flag | commands | default | range | environment | JSON key | meaning |\n|---|---|---|---|---|---|---|\n";
    }
    section = row.section;
    std::string commands;
    for (const CommandRow& command : command_table()) {
      if ((row.commands & command.command) != 0) commands.append(commands.empty() ? "" : ", ").append(command.name);
    }
    out += "| " + code(flag_text(row)) + " | " + commands + " | " + default_text(row) + " | " + range_text(row) +
           " | " + (row.in_environment ? code(environment_name(row)) : "") + " | " +
           (row.in_request ? code(json_key(row)) : "") + " | " + escaped_cell(row.help) + " |\n";
  }
  return out;
}

}  // namespace quire
