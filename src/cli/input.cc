#include "cli/input.h"

#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <iterator>

#include "base/mapped_file.h"
#include "base/units.h"
#include "cli/terminal.h"

namespace quire {

Result<std::string> argument_or_input(const std::optional<std::string>& argument, std::string_view what) {
  if (argument) return *argument;
  if (is_terminal(stdin)) {
    return invalid_argument("no " + std::string(what) +
                            " was given; put it in quotes after the command, or pipe it in");
  }
  return std::string(std::istreambuf_iterator<char>(std::cin), {});
}

Result<std::string> read_file(const std::string& path, int64_t limit_bytes) {
  QUIRE_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path));
  const auto bytes = file.bytes();
  if (static_cast<int64_t>(bytes.size()) > limit_bytes) {
    return out_of_range(path + ": has " + bytes_text(static_cast<int64_t>(bytes.size())) + "; " +
                        bytes_text(limit_bytes) + " is the limit");
  }
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  QUIRE_RETURN_IF_ERROR(file.unchanged());
  return text;
}

Result<int64_t> parse_time(const std::string& text) {
  using namespace std::chrono;
  const Status wrong = invalid_argument("--now is \"" + text + "\"; it takes a time such as 2026-01-02T03:04:05");
  int y = 0;
  unsigned m = 0;
  unsigned d = 0;
  int h = 0;
  int min = 0;
  int s = 0;
  int read = 0;
  const int fields = std::sscanf(text.c_str(), "%4d-%2u-%2uT%2d:%2d:%2d%n", &y, &m, &d, &h, &min, &s, &read);
  constexpr size_t kLength = sizeof "2026-01-02T03:04:05" - 1;
  if (fields != 6 || static_cast<size_t>(read) != text.size() || text.size() != kLength) return wrong;
  const year_month_day date = year(y) / month(m) / day(d);
  if (!date.ok() || h < 0 || h > 23 || min < 0 || min > 59 || s < 0 || s > 59) return wrong;
  return duration_cast<seconds>(sys_days(date).time_since_epoch()).count() + h * 3600 + min * 60 + s;
}

LineReader::Event LineReader::next(std::string& line, const InterruptScope& interrupt) {
  while (true) {
    if (const size_t end = buffered_.find('\n'); end != std::string::npos) {
      line = buffered_.substr(0, end);
      buffered_.erase(0, end + 1);
      return Event::kLine;
    }
    if (ended_) {
      line = std::move(buffered_);
      buffered_.clear();
      return line.empty() ? Event::kEnd : Event::kLine;
    }
    std::array<char, 4096> bytes;
    if (!interrupt.wait_for_input(STDIN_FILENO)) return Event::kInterrupted;
    const ssize_t count = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (count <= 0) {
      ended_ = true;
    } else {
      buffered_.append(bytes.data(), static_cast<size_t>(count));
    }
  }
}

}  // namespace quire
