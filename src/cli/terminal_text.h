// An answer as a terminal shows it while it arrives: wrapped at words by the width of characters, code blocks coloured and
// left in their lines. Control characters of the answer are shown, not obeyed.
//
// A word is printed when it is complete, since only then is known whether it fits; what is returned by push() is therefore a
// word behind. The width may change between calls (a resized window). One answer; one thread.
#pragma once

#include <string>
#include <string_view>

namespace quire {

class TerminalText {
 public:
  explicit TerminalText(bool colour) : colour_(colour) {}

  // What to print now that `piece` has come; `columns`: of the window.
  std::string push(std::string_view piece, int columns);
  // The rest, and the end of the line that was begun.
  std::string finish(int columns);

 private:
  void take_held(bool all);
  void take(std::string_view cluster, int cells);
  void take_newline();
  void note_fence();
  void flush_word();
  void print_spaces();
  void print_word();
  void print(std::string_view text, int cells);
  void end_line();

  bool colour_;
  int columns_ = 80;
  std::string held_;  // the last cluster, which may grow
  std::string word_;
  int word_cells_ = 0;
  bool word_may_end_ = false;  // after a wide character: a line can end there without a space
  std::string spaces_;         // before the word
  int column_ = 0;
  bool line_is_empty_ = true;  // of the answer's line, but for spaces
  std::string fence_;          // of the code block that is open: "```"; empty: none
  bool fence_closes_ = false;  // at the end of this line
  bool coloured_ = false;
  std::string out_;
};

}  // namespace quire
