// The commands of quire. Each takes a parsed command line and prints; what it computes comes from engine/.
//
// A command reports failure as a Status, which command_line.cc prints and turns into an exit code; kCancelled means
// that the user interrupted it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "options/options.h"

namespace quire {

struct Invocation {
  Options options;
  std::vector<std::string> texts;   // the arguments that are no flags
  std::optional<std::string> text;  // the first of them
  bool text_is_literal = false;     // it stood behind "--"
  bool model_is_given = false;      // by a flag or an argument
};

struct CommandRow {
  Command command;
  std::string_view name;
  std::string_view text_name;  // "[PROMPT]" or "IN OUT", as usage shows it, a word an argument; empty: none
  std::string_view summary;    // one line
  std::string_view details;    // paragraphs for --help, lines already broken
  Status (*execute)(const Invocation& invocation);
  bool text_is_model = false;  // the argument says what --model says elsewhere
};

std::span<const CommandRow> command_table();

const CommandRow* find_command(std::string_view name);  // null: no such command
// "NAME is not a command", with the nearest one.
Status unknown_command(std::string_view name);

Status command_run(const Invocation& invocation);
Status command_inspect(const Invocation& invocation);
Status command_tokenize(const Invocation& invocation);
Status command_template(const Invocation& invocation);
Status command_score(const Invocation& invocation);
Status command_pull(const Invocation& invocation);
Status command_serve(const Invocation& invocation);
Status command_eval(const Invocation& invocation);
Status command_quantize(const Invocation& invocation);
Status command_bench(const Invocation& invocation);
Status command_replay(const Invocation& invocation);
Status command_list(const Invocation& invocation);
Status command_remove(const Invocation& invocation);
Status command_doctor(const Invocation& invocation);
Status command_help_page(const Invocation& invocation);
Status command_version(const Invocation& invocation);

}  // namespace quire
