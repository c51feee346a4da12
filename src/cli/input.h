// What commands read: a text from the command line or standard input, lines that Ctrl-C may interrupt, times.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "cli/interrupt.h"

namespace quire {

// The argument, or else the whole of standard input; fails where that is a terminal, since nobody knows to type there.
Result<std::string> argument_or_input(const std::optional<std::string>& argument, std::string_view what);

// The bytes of a file, at most `limit_bytes` of them; fails on a longer one.
Result<std::string> read_file(const std::string& path, int64_t limit_bytes);

// "2026-01-02T03:04:05" as seconds since the epoch, read as UTC.
Result<int64_t> parse_time(const std::string& text);

// Lines of standard input, until it ends or Ctrl-C comes.
class LineReader {
 public:
  enum class Event { kLine, kEnd, kInterrupted };
  // Leaves the interrupt for the caller to take.
  Event next(std::string& line, const InterruptScope& interrupt);

 private:
  std::string buffered_;
  bool ended_ = false;
};

}  // namespace quire
