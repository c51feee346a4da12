#include "cli/terminal.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "text/utf8.h"

namespace quire {
namespace {

// Code points, which is what most characters take on a terminal.
size_t characters(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

bool is_terminal(std::FILE* file) { return ::isatty(::fileno(file)) == 1; }

std::string styled(std::FILE* file, Style style, std::string_view text) {
  const char* terminal = std::getenv("TERM");
  const char* no_color = std::getenv("NO_COLOR");
  const bool plain = !is_terminal(file) || terminal == nullptr || std::string_view(terminal) == "dumb" ||
                     (no_color != nullptr && *no_color != '\0');
  if (plain) return std::string(text);
  constexpr std::array<std::string_view, 4> kCodes = {"1", "2", "1;31", "1;36"};
  return std::string("\x1b[").append(kCodes[static_cast<size_t>(style)]).append("m").append(text).append("\x1b[0m");
}

void note(std::string_view text) { std::fprintf(stderr, "%s\n", styled(stderr, Style::kDim, text).c_str()); }

std::string bytes_text(int64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "kB", "MB", "GB", "TB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, unit > 0 && value < 99.95 ? "%.1f %s" : "%.0f %s", value, kUnits[unit]);
  return buffer;
}

std::string count_text(int64_t count) {
  std::string digits = std::to_string(count);
  const size_t first = digits.starts_with('-') ? 1 : 0;
  for (size_t at = digits.size(); at > first + 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string counted(int64_t count, std::string_view noun) {
  return count_text(count).append(" ").append(noun).append(count == 1 ? "" : "s");
}

std::string table_text(const std::vector<std::vector<std::string>>& rows, std::string_view indent,
                       std::string_view alignment) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    if (widths.size() < row.size()) widths.resize(row.size());
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], characters(row[i]));
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line(indent);
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - characters(row[i]), ' ');
      const bool left = alignment[std::min(i, alignment.size() - 1)] == 'l';
      line.append(i > 0 ? "  " : "").append(left ? row[i] + padding : padding + row[i]);
    }
    out.append(line, 0, line.find_last_not_of(' ') + 1).append("\n");
  }
  return out;
}

std::string visible_text(std::string_view bytes) {
  const bool whole = is_valid_utf8(bytes);
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7F || (byte >= 0x80 && !whole)) {
      char buffer[8];
      std::snprintf(buffer, sizeof buffer, "\\x%02X", byte);
      out += buffer;
    } else {
      out += c;
    }
  }
  return out;
}

void ProgressLine::show(std::string_view what, double fraction) {
  if (!is_terminal(stderr)) return;
  const int percent = static_cast<int>(std::floor(100 * std::clamp(fraction, 0.0, 1.0)));
  if (percent == shown_percent_ && what == shown_what_) return;
  shown_percent_ = percent;
  shown_what_ = what;
  std::fprintf(stderr, "\r\x1b[K%s %d %%", shown_what_.c_str(), percent);
  std::fflush(stderr);
}

void ProgressLine::clear() {
  if (shown_percent_ < 0) return;
  shown_percent_ = -1;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
}

}  // namespace quire
