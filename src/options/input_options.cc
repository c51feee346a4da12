#include "options/option_rows.h"

namespace quire {
namespace {

constexpr std::string_view kInputSection = "Input and output";

}  // namespace

std::vector<OptionRow> input_rows() {
  return {
      {.name = "system",
       .member = &Options::system,
       .commands = kRun | kTemplate,
       .section = kInputSection,
       .value_name = "TEXT",
       .help = "system message put before the conversation",
       .unset_text = "none"},
      {.name = "history",
       .member = &Options::history,
       .commands = kRun,
       .section = kInputSection,
       .value_name = "FILE",
       .help = "keeps what was typed in chats, for later ones; off: nothing is kept",
       .unset_text = "$XDG_STATE_HOME/quire/history, else ~/.local/state/quire/history",
       .in_environment = true},
      {.name = "raw",
       .member = &Options::raw,
       .commands = kRun,
       .section = kInputSection,
       .help = "continue the text as it is, without the model's chat template"},
      {.name = "add-special",
       .member = &Options::add_special,
       .commands = kTokenize,
       .section = kInputSection,
       .help = "add the tokens that the model wants around a text, such as BOS",
       .in_request = true},
      {.name = "parse-special",
       .member = &Options::parse_special,
       .commands = kTokenize,
       .section = kInputSection,
       .help = "read control tokens written in the text, such as <|im_end|>, as tokens",
       .in_request = true},
      {.name = "template-file",
       .member = &Options::template_file,
       .commands = kTemplate,
       .section = kInputSection,
       .value_name = "FILE",
       .help = "a Jinja chat template to render instead of the model's",
       .unset_text = "the model's template"},
      {.name = "now",
       .member = &Options::now,
       .commands = kTemplate,
       .section = kInputSection,
       .value_name = "TIME",
       .help = "what the template takes for the current time, as 2026-01-02T03:04:05",
       .unset_text = "the clock"},
      {.name = "jsonl",
       .member = &Options::jsonl,
       .commands = kRun | kTokenize | kTemplate | kScore,
       .section = kInputSection,
       .help = "read one JSON request a line from standard input and answer one a line, in order"},
      {.name = "json",
       .member = &Options::json,
       .commands = kInspect | kBench | kEval | kList | kDoctor,
       .section = kInputSection,
       .help = "print JSON: one object, or one a line where figures come one by one"},
      {.name = "what-if",
       .member = &Options::what_if,
       .commands = kInspect,
       .section = kInputSection,
       .help = "show instead what the weights would take in other types, and how many sequences of --context tokens "
               "(0: 4096) would fit"},
  };
}

}  // namespace quire
