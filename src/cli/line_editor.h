// Lines typed by a person at a terminal, edited with libedit: arrows, history, search, wide characters, pastes of several lines
// as one. The encoding is UTF-8 whatever the locale. Owns the editor and its history in memory. One thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/interrupt.h"
#include "cli/terminal_mode.h"

namespace quire {

class LineEditor {
 public:
  enum class Event { kLine, kEnd, kInterrupted };

  // Hides the input of `terminal` for as long as it lives. Null: the terminal cannot be edited on (TERM is "dumb" or unknown), or no UTF-8 is to be had.
  static std::unique_ptr<LineEditor> create(ChatTerminal& terminal, const InterruptScope& interrupt);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  // The next line, which holds line breaks where it was pasted or Alt-Enter was pressed. kInterrupted leaves the interrupt for
  // the caller to take. The cursor is at the beginning of a line afterwards.
  Event next(std::string_view prompt, std::string& line);
  // Adds to what Up brings back.
  void remember(const std::string& entry);

 private:
  struct State;
  explicit LineEditor(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace quire
