// What `quire run` is to answer: its argument, standard input, or both. docs/terminal.md has the rules for people.
#pragma once

#include <optional>
#include <string>

#include "base/status.h"
#include "cli/commands.h"

namespace quire {

inline constexpr size_t kLargestInputBytes = 16 << 20;  // of standard input

// Nothing: standard input is a terminal, and nobody gave a prompt, so that it is a chat.
//
// A file, pipe or socket on standard input is read to its end and stands behind the argument, after an empty line. A terminal
// and devices such as /dev/null are read only where there is no argument, or where it is "-". A last line break does not
// count. Where a pipe keeps silent for two seconds, a note says what is waited for. Fails on an empty prompt, on input that
// is no UTF-8, and beyond the limit.
Result<std::optional<std::string>> run_prompt(const Invocation& invocation);

// The argument, a line break, an empty line, the input; without what is empty.
std::string joined_prompt(const std::string& argument, std::string input);

}  // namespace quire
