#include "cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "cli/command_words.h"
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
  std::vector<std::string> literal;  // what stood behind "--"
  std::vector<std::pair<const OptionRow*, CLI::Option*>> options;

  Parser(const CommandRow& command, CLI::App& parser) : row(&command), app(&parser) {
    app->set_help_flag();
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
    app->add_option("text", texts);  // their number is checked by take_texts()
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
    const OptionRow* model = find_option("model");
    for (const auto& [option, parsed] : options) result.model_is_given |= option == model && parsed->count() > 0;
    QUIRE_RETURN_IF_ERROR(take_texts(result));
    return result;
  }

  // What stood behind "--" comes after the other texts.
  Status take_texts(Invocation& result) const {
    const std::string command = "quire " + std::string(row->name);
    const size_t allowed =
        row->text_name.empty() ? 0 : 1 + static_cast<size_t>(std::ranges::count(row->text_name, ' '));
    result.text_is_literal = texts.empty() && !literal.empty();
    result.texts.insert(result.texts.end(), literal.begin(), literal.end());
    if (result.texts.size() > allowed) {
      return invalid_argument("\"" + result.texts[allowed] + "\" is one argument too many" +
                              (allowed == 1 && !row->text_is_model ? "; put a text of several words in quotes" : "") +
                              " (`" + command + " --help`)");
    }
    if (result.texts.empty()) return {};
    if (!row->text_is_model) {
      result.text = result.texts.front();
      return {};
    }
    if (result.model_is_given) {
      return invalid_argument(command + " takes one model, and both \"" + result.texts.front() +
                              "\" and --model name one");
    }
    result.options.model = result.texts.front();
    result.model_is_given = true;
    return {};
  }
};

int fail(const Status& status) {
  const bool cancelled = status.code() == StatusCode::kCancelled;
  if (!cancelled || !status.message().empty()) print_error(status.message());
  return cancelled ? kInterruptExitCode : kExitUser;
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

// What the parser of flags did not take, in words that help.
Status explain(const CLI::ParseError& error) {
  const std::string what = error.what();
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) == nullptr) {
    return invalid_argument(what + "; `quire COMMAND --help` lists the options");
  }
  const std::string name = what.substr(0, what.find_first_of(": "));
  return invalid_argument((name.starts_with('-') ? "" : "--") + name + " takes " +
                          (what.find("override") == std::string::npos ? "one value" : "no value"));
}

int parse_and_execute(int argc, const char* const* argv) {
  Result<CommandWords> split = split_command_line({argv + 1, argv + argc});
  if (!split.ok()) return fail(split.status());
  CommandWords& words = *split;
  if (words.command.empty()) {
    if (words.wants_help) return std::fputs(overview_help().c_str(), stdout), 0;
    if (words.wants_version) return std::puts(version_text().c_str()), 0;
    // A script that names no command has lost one.
    return std::fputs(overview_help().c_str(), stderr), kExitUser;
  }
  if (words.command == kOptionsPage) return std::fputs(options_markdown().c_str(), stdout), 0;
  const CommandRow& row = *find_command(words.command);
  if (words.wants_help) return std::fputs(command_help(row).c_str(), stdout), 0;
  CLI::App app;
  Parser parser(row, app);
  parser.literal = std::move(words.literal);
  std::ranges::reverse(words.arguments);  // as the parser wants them
  try {
    app.parse(std::move(words.arguments));
  } catch (const CLI::ParseError& error) {
    return fail(explain(error));
  }
  return execute(parser);
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
