#include "cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/help.h"
#include "cli/interrupt.h"
#include "cli/terminal.h"

namespace quire {
namespace {

constexpr int kExitUser = 2;

// Values of one flag, in the order given, into Options. A list takes every occurrence.
Status apply_flag(Options& options, const OptionRow& row, const std::vector<std::string>& values) {
  const std::string shown_as = "--" + std::string(row.name);
  if (std::holds_alternative<std::vector<std::string> Options::*>(row.member)) {
    return set_option(options, row, values, shown_as);
  }
  std::vector<int64_t> all;
  for (const std::string& text : values) {
    QUIRE_ASSIGN_OR_RETURN(OptionValue value, parse_option(row, text, shown_as));
    if (!is_list(row)) return set_option(options, row, value, shown_as);
    const auto& ids = std::get<std::vector<int64_t>>(value);
    all.insert(all.end(), ids.begin(), ids.end());
  }
  return set_option(options, row, all, shown_as);
}

// One command's part of the parser, and what it parsed.
struct Parser {
  const CommandRow* row = nullptr;
  CLI::App* app = nullptr;
  std::vector<std::string> texts;
  CLI::Option* text_option = nullptr;
  std::vector<std::pair<const OptionRow*, CLI::Option*>> options;

  Parser(const CommandRow& command, CLI::App& root)
      : row(&command), app(root.add_subcommand(std::string(command.name))) {
    app->set_help_flag("-h,--help");
    for (const OptionRow& option : option_table()) {
      if ((option.commands & command.command) == 0) continue;
      std::string names = "--" + std::string(option.name);
      if (option.short_name != 0) names += std::string(",-") + option.short_name;
      const auto accept = [](const CLI::results_t&) { return true; };
      CLI::Option* added = is_switch(option) ? app->add_flag(names) : app->add_option(names, accept);
      if (is_switch(option)) added->disable_flag_override();
      if (is_list(option)) added->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
      options.emplace_back(&option, added);
    }
    if (command.text_name.empty()) return;
    const auto words = std::ranges::count(command.text_name, ' ') + 1;
    text_option = app->add_option("text", texts)->expected(0, static_cast<int>(words));
  }

  Result<Invocation> invocation() const {
    Invocation result;
    QUIRE_RETURN_IF_ERROR(read_environment(result.options, row->command));
    for (const auto& [option, parsed] : options) {
      if (parsed->count() == 0) continue;
      const std::vector<std::string> values = is_switch(*option) ? std::vector<std::string>{"1"} : parsed->results();
      QUIRE_RETURN_IF_ERROR(apply_flag(result.options, *option, values));
    }
    result.texts = texts;
    if (!texts.empty()) result.text = texts.front();
    return result;
  }
};

int fail(const Status& status) {
  const bool cancelled = status.code() == StatusCode::kCancelled;
  if (!cancelled || !status.message().empty()) {
    std::fprintf(stderr, "%s %s\n", styled(stderr, Style::kError, "quire:").c_str(), status.message().c_str());
  }
  return cancelled ? kInterruptExitCode : kExitUser;
}

// What was not expected, in words that help: CLI11 only lists it.
Status explain_extras(const CLI::App& root, const std::vector<Parser>& parsers) {
  for (const Parser& parser : parsers) {
    if (!parser.app->parsed()) continue;
    const std::string command = "quire " + std::string(parser.row->name);
    const std::string extra = parser.app->remaining().empty() ? std::string() : parser.app->remaining().front();
    if (extra.starts_with('-')) {
      return invalid_argument(extra + " is not an option of " + command + "; `" + command + " --help` lists them");
    }
    return invalid_argument("\"" + extra + "\" is one argument too many" +
                            (parser.text_option != nullptr ? "; put a text of several words in quotes" : "") + " (`" +
                            command + " --help`)");
  }
  const std::vector<std::string> extras = root.remaining();
  const std::string extra = extras.empty() ? std::string() : extras.front();
  return invalid_argument("\"" + extra + "\" is not a command; `quire --help` lists them");
}

int execute(const Parser& parser) {
  const Result<Invocation> invocation = parser.invocation();
  if (!invocation.ok()) return fail(invocation.status());
  const Status status = parser.row->execute(*invocation);
  if (!status.ok()) return fail(status);
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    return fail(io_error("standard output cannot be written: the answer is not complete"));
  }
  return 0;
}

int parse_and_execute(int argc, const char* const* argv) {
  CLI::App root;
  root.set_help_flag("-h,--help");
  root.require_subcommand(0, 1);
  const CLI::Option* version = root.add_flag("--version");
  const CLI::App* options_page = root.add_subcommand("options")->group("");  // writes docs/options.md
  std::vector<Parser> parsers;
  parsers.reserve(command_table().size());  // options point into their Parser
  for (const CommandRow& row : command_table()) parsers.emplace_back(row, root);

  try {
    root.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    for (const Parser& parser : parsers) {
      if (parser.app->parsed()) return std::fputs(command_help(*parser.row).c_str(), stdout), 0;
    }
    return std::fputs(overview_help().c_str(), stdout), 0;
  } catch (const CLI::ExtrasError&) {
    return fail(explain_extras(root, parsers));
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string what = error.what();
    const std::string name = what.substr(0, what.find_first_of(": "));
    if (name == "text")
      return fail(
          invalid_argument("too many arguments; put a text of several words in quotes (`quire COMMAND --help`)"));
    return fail(invalid_argument((name.starts_with('-') ? "" : "--") + name + " takes " +
                                 (what.find("override") == std::string::npos ? "one value" : "no value")));
  } catch (const CLI::ParseError& error) {
    return fail(invalid_argument(std::string(error.what()) + "; `quire COMMAND --help` lists the options"));
  }
  if (version->count() > 0) return std::puts("quire " QUIRE_VERSION), 0;
  if (options_page->parsed()) return std::fputs(options_markdown().c_str(), stdout), 0;
  for (const Parser& parser : parsers) {
    if (parser.app->parsed()) return execute(parser);
  }
  return std::fputs(overview_help().c_str(), stdout), 0;
}

}  // namespace

int run_command_line(int argc, const char* const* argv) {
  exit_on_interrupt();
  try {
    return parse_and_execute(argc, argv);
  } catch (const std::bad_alloc&) {
    return fail(resource_exhausted("out of memory; `quire inspect` shows what a model needs, --context lowers it"));
  } catch (const std::exception& error) {
    return fail(io_error(error.what()));
  }
}

}  // namespace quire
