#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "cli/terminal_text.h"
#include "unicode/display_width.h"
#include "unicode/utf8.h"

namespace quire {
namespace {

// As standard error shows it: wrapped at words on a terminal. No line break at the end.
std::string wrapped_text(std::string_view text) {
  std::string shown(text);
  if (is_terminal(stderr)) {
    TerminalText layout(false);
    shown = layout.push(text, terminal_columns(stderr));
    shown += layout.finish(terminal_columns(stderr));
  }
  while (shown.ends_with('\n')) shown.pop_back();
  return shown;
}

}  // namespace

bool is_terminal(std::FILE* file) { return ::isatty(::fileno(file)) == 1; }

bool obeys_escapes(std::FILE* file) {
  const char* terminal = std::getenv("TERM");
  return is_terminal(file) && terminal != nullptr && *terminal != '\0' && std::string_view(terminal) != "dumb";
}

bool shows_colours(std::FILE* file) {
  const char* no_color = std::getenv("NO_COLOR");
  return obeys_escapes(file) && (no_color == nullptr || *no_color == '\0');
}

int terminal_columns(std::FILE* file) {
  constexpr int kUsual = 80;
  winsize window{};
  return ::ioctl(::fileno(file), TIOCGWINSZ, &window) == 0 && window.ws_col > 0 ? window.ws_col : kUsual;
}

std::string styled(std::FILE* file, Style style, std::string_view text) {
  if (!shows_colours(file)) return std::string(text);
  constexpr std::array<std::string_view, 4> kCodes = {"1", "2", "1;31", "1;36"};
  return std::string("\x1b[").append(kCodes[static_cast<size_t>(style)]).append("m").append(text).append("\x1b[0m");
}

void print_error(std::string_view message) {
  constexpr std::string_view kName = "quire:";
  const std::string line = wrapped_text(std::string(kName).append(" ").append(message));
  std::fprintf(stderr, "%s%s\n", styled(stderr, Style::kError, kName).c_str(), line.c_str() + kName.size());
}

bool ask(std::string_view question, bool by_default) {
  std::fprintf(stderr, "%s %s ", std::string(question).c_str(), by_default ? "[Y/n]" : "[y/N]");
  char letter = 0;
  char next = 0;
  bool ended = false;
  while (!(ended = ::read(STDIN_FILENO, &next, 1) != 1) && next != '\n')
    letter = letter == 0 && next != ' ' ? next : letter;
  if (ended) std::fputs("\n", stderr);
  if (ended && letter == 0) return false;
  return letter == 0 ? by_default : letter == 'y' || letter == 'Y';
}

void note(std::string_view text) {
  std::fprintf(stderr, "%s\n", styled(stderr, Style::kDim, wrapped_text(text)).c_str());
}

std::string table_text(const std::vector<std::vector<std::string>>& rows, std::string_view indent,
                       std::string_view alignment) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    if (widths.size() < row.size()) widths.resize(row.size());
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]));
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line(indent);
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - display_width(row[i]), ' ');
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
  if (!obeys_escapes(stderr)) return;
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
