#include "cli/run_prompt.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/units.h"
#include "cli/terminal.h"
#include "unicode/utf8.h"

namespace quire {
namespace {

constexpr int kSilenceMs = 2000;

// Whether somebody put it there to be read.
bool input_was_given() {
  struct stat file {};
  return ::fstat(STDIN_FILENO, &file) == 0 &&
         (S_ISREG(file.st_mode) || S_ISFIFO(file.st_mode) || S_ISSOCK(file.st_mode));
}

Result<std::string> read_input() {
  std::string text;
  std::array<char, 1 << 16> bytes;
  bool said = is_terminal(stdin);
  while (true) {
    pollfd waited = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    if (!said && ::poll(&waited, 1, kSilenceMs) == 0) {
      note("waiting for standard input to end; where there is none to read, add </dev/null");
      said = true;
    }
    const ssize_t count = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return io_error(std::string("standard input cannot be read: ") + std::strerror(errno));
    if (count == 0) break;
    text.append(bytes.data(), static_cast<size_t>(count));
    if (text.size() > kLargestInputBytes) {
      return out_of_range("standard input has more than " + bytes_text(kLargestInputBytes) +
                          ", the limit of a prompt; give less of it");
    }
  }
  QUIRE_RETURN_IF_ERROR(check_utf8("standard input", text));
  return text;
}

}  // namespace

std::string joined_prompt(const std::string& argument, std::string input) {
  if (input.ends_with('\n')) input.pop_back();
  if (input.ends_with('\r')) input.pop_back();
  if (argument.empty() || input.empty()) return argument + input;
  return argument + "\n\n" + input;
}

Result<std::optional<std::string>> run_prompt(const Invocation& invocation) {
  const bool from_input_alone = !invocation.text || (*invocation.text == "-" && !invocation.text_is_literal);
  if (!invocation.text && is_terminal(stdin)) return std::optional<std::string>();
  const std::string argument = from_input_alone ? "" : *invocation.text;
  std::string input;
  if (from_input_alone || input_was_given()) {
    QUIRE_ASSIGN_OR_RETURN(input, read_input());
  }
  std::string prompt = joined_prompt(argument, std::move(input));
  if (prompt.find_first_not_of(" \t\r\n") != std::string::npos) return std::optional(std::move(prompt));
  return invalid_argument(
      from_input_alone ? "no prompt was given: standard input is empty; put the prompt in quotes after the command, "
                         "or pipe it in"
                       : "the prompt is empty");
}

}  // namespace quire
