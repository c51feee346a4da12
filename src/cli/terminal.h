// How people see output: colour only on a terminal, columns aligned, one line of progress.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace quire {

bool is_terminal(std::FILE* file);

bool obeys_escapes(std::FILE* file);    // a terminal whose cursor can be moved
bool shows_colours(std::FILE* file);    // the same, unless NO_COLOR is set
int terminal_columns(std::FILE* file);  // now, for the window may change; 80 where none tells

enum class Style { kHeading, kDim, kError, kPrompt };

// `text` in the style where `file` shows colours, else as it is.
std::string styled(std::FILE* file, Style style, std::string_view text);

// "quire: MESSAGE" on standard error.
void print_error(std::string_view message);

// Asks a person at the terminal, on standard error; a mere Enter answers `by_default`, the end of the input no.
bool ask(std::string_view question, bool by_default);

// A remark beside the output: a dim line on standard error.
void note(std::string_view text);

// Rows of cells as columns two spaces apart, by the width of their characters. `alignment` has a letter a column, l or r; the last one holds for the rest.
std::string table_text(const std::vector<std::vector<std::string>>& rows, std::string_view indent = "",
                       std::string_view alignment = "lr");

// The bytes of a token as they can be shown on one line: control characters and what is not UTF-8 escaped.
std::string visible_text(std::string_view bytes);

// A line on standard error that is drawn over; nothing where that is no terminal that can.
class ProgressLine {
 public:
  ~ProgressLine() { clear(); }
  void show(std::string_view what, double fraction);
  void clear();

 private:
  int shown_percent_ = -1;
  std::string shown_what_;
};

}  // namespace quire
