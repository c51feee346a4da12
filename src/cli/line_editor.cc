#include "cli/line_editor.h"

#include <histedit.h>
#include <locale.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

#include "cli/history_file.h"
#include "cli/terminal.h"
#include "unicode/display_width.h"
#include "unicode/utf8.h"

namespace quire {
namespace {

constexpr char kPromptMark = '\1';  // around what takes no room in the prompt
constexpr std::string_view kPasteEnd = "\x1b[201~";
constexpr size_t kLongestPaste = 4 << 20;

// The prompt in colour, with its escapes marked. libedit keeps an escape with the character behind it and forgets one that
// has none, so the blanks at the end come after the colour.
std::string marked_prompt(std::string_view prompt) {
  const std::string_view words = prompt.substr(0, prompt.find_last_not_of(' ') + 1);
  const std::string coloured = styled(stdout, Style::kPrompt, words);
  if (coloured == words) return std::string(prompt);
  const size_t begin = coloured.find(words);
  const auto marked = [](std::string_view escape) { return kPromptMark + std::string(escape) + kPromptMark; };
  return marked(std::string_view(coloured).substr(0, begin)) + std::string(words) +
         marked(std::string_view(coloured).substr(begin + words.size())) + std::string(prompt.substr(words.size()));
}

// libedit reads, draws and measures characters by the locale. Numbers keep their point.
bool use_utf8() {
  for (const char* name : {"C.UTF-8", "C.utf8", "en_US.UTF-8", ""}) {
    if (setlocale(LC_CTYPE, name) != nullptr && MB_CUR_MAX >= 4) return true;
  }
  return false;
}

}  // namespace

struct LineEditor::State {
  ChatTerminal& terminal;
  const InterruptScope& interrupt;
  EditLine* editor = nullptr;
  History* history = nullptr;
  std::string prompt = {};
  size_t prompt_cells = 0;
  int columns = 0;         // that the line was drawn for
  std::string bytes = {};  // read and not yet given to libedit
  bool ended = false;      // of the input
  bool stopped = false;    // by Ctrl-C, during this line

  ~State() {
    if (editor != nullptr) el_end(editor);
    if (history != nullptr) history_end(history);
  }

  static State& of(EditLine* editor) {
    State* state = nullptr;
    el_get(editor, EL_CLIENTDATA, &state);
    return *state;
  }

  // The row below the first one of the line that the cursor is in, in a window so wide.
  int cursor_row(int width) const {
    const LineInfo* line = el_line(editor);
    std::string_view before(line->buffer, static_cast<size_t>(line->cursor - line->buffer));
    int row = 0;
    auto column = static_cast<int>(prompt_cells);
    while (!before.empty()) {
      const Cluster cluster = first_cluster(before);
      const bool breaks = before[0] == '\n';
      if (breaks || column + cluster.cells > width) {
        ++row;
        column = 0;
      }
      column += breaks ? 0 : cluster.cells;
      before.remove_prefix(cluster.bytes);
    }
    return row + (column == width ? 1 : 0);
  }

  // Where a terminal puts lines that were wrapped for another width differs: some wrap them anew. The nearer of both guesses
  // may leave a piece of the old line standing, and never overwrites what is above it.
  void redraw(ChatTerminal::Change change) {
    const int width = terminal_columns(stdout);
    if (change == ChatTerminal::Change::kWindow) {
      const int rows = std::min(cursor_row(columns), cursor_row(width));
      if (rows > 0) std::printf("\x1b[%dA", rows);
    }
    std::fputs("\r\x1b[J", stdout);
    std::fflush(stdout);
    columns = width;
    el_resize(editor);
    el_set(editor, EL_REFRESH);
  }

  // More bytes; false where the line ends here.
  bool fill() {
    while (true) {
      if (const ChatTerminal::Change change = terminal.take_change(); change != ChatTerminal::Change::kNone) {
        redraw(change);
      }
      const InterruptScope::Wait what = interrupt.wait(STDIN_FILENO, -1);
      if (what == InterruptScope::Wait::kInterrupted) {
        stopped = true;
        return false;
      }
      if (what == InterruptScope::Wait::kOther) continue;
      std::array<char, 4096> read_bytes;
      const ssize_t count = ::read(STDIN_FILENO, read_bytes.data(), read_bytes.size());
      if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (count <= 0) {
        ended = true;
        return false;
      }
      bytes.append(read_bytes.data(), static_cast<size_t>(count));
      return true;
    }
  }

  // One character for libedit; what is no UTF-8 becomes U+FFFD.
  static int read_character(EditLine* editor, wchar_t* character) {
    State& state = of(editor);
    while (true) {
      if (!state.bytes.empty()) {
        const Utf8Step step = utf8_step(state.bytes);
        if (step.kind != Utf8Step::Kind::kUnfinished) {
          *character = static_cast<wchar_t>(step.kind == Utf8Step::Kind::kValid ? step.code_point : U'\uFFFD');
          state.bytes.erase(0, step.length);
          return 1;
        }
      }
      if (!state.fill()) return 0;
    }
  }

  static char* prompt_text(EditLine* editor) { return of(editor).prompt.data(); }

  // After ESC [ 200 ~: everything up to ESC [ 201 ~ is text, whatever keys it looks like.
  static unsigned char take_paste(EditLine* editor, int) {
    State& state = of(editor);
    size_t end = 0;
    while ((end = state.bytes.find(kPasteEnd)) == std::string::npos && state.bytes.size() < kLongestPaste) {
      if (!state.fill()) return CC_EOF;
    }
    const std::string pasted = state.bytes.substr(0, end);
    state.bytes.erase(0, end == std::string::npos ? pasted.size() : end + kPasteEnd.size());
    const std::string text = cleaned(repair_utf8(pasted));
    if (!text.empty() && el_insertstr(editor, text.c_str()) != 0) return CC_ERROR;
    return CC_REFRESH;
  }

  // Terminals send a line break as CR. A break at the end of the paste does not begin a new line; other control characters
  // are left out.
  static std::string cleaned(const std::string& pasted) {
    std::string text;
    for (size_t i = 0; i < pasted.size(); ++i) {
      const char c = pasted[i];
      if (c == '\r' && i + 1 < pasted.size() && pasted[i + 1] == '\n') continue;
      const auto byte = static_cast<unsigned char>(c);
      if (c == '\r' || c == '\n') {
        text += '\n';
      } else if (c == '\t') {
        text += "    ";
      } else if (byte >= 0x20 && byte != 0x7F) {
        text += c;
      }
    }
    while (text.ends_with('\n')) text.pop_back();
    return text;
  }

  static unsigned char add_line_break(EditLine* editor, int) {
    return el_insertstr(editor, "\n") == 0 ? CC_REFRESH : CC_ERROR;
  }

  void bind_keys() {
    el_set(editor, EL_ADDFN, "quire-paste", "insert a paste", take_paste);
    el_set(editor, EL_ADDFN, "quire-newline", "insert a line break", add_line_break);
    constexpr std::array<std::array<const char*, 2>, 15> kKeys = {{{"\033[200~", "quire-paste"},
                                                                   {"\033\r", "quire-newline"},
                                                                   {"\033\n", "quire-newline"},
                                                                   {"\033[H", "ed-move-to-beg"},
                                                                   {"\033OH", "ed-move-to-beg"},
                                                                   {"\033[1~", "ed-move-to-beg"},
                                                                   {"\033[F", "ed-move-to-end"},
                                                                   {"\033OF", "ed-move-to-end"},
                                                                   {"\033[4~", "ed-move-to-end"},
                                                                   {"\033[3~", "ed-delete-next-char"},
                                                                   {"\033[1;5D", "ed-prev-word"},
                                                                   {"\033[1;5C", "em-next-word"},
                                                                   {"^R", "em-inc-search-prev"},
                                                                   {"^W", "ed-delete-prev-word"},
                                                                   {"^U", "vi-kill-line-prev"}}};
    for (const auto& [key, function] : kKeys) el_set(editor, EL_BIND, key, function, nullptr);
  }
};

LineEditor::LineEditor(std::unique_ptr<State> state) : state_(std::move(state)) {}
LineEditor::~LineEditor() = default;

std::unique_ptr<LineEditor> LineEditor::create(ChatTerminal& terminal, const InterruptScope& interrupt) {
  if (!obeys_escapes(stdout) || !use_utf8()) return nullptr;
  auto state = std::unique_ptr<State>(new State{.terminal = terminal, .interrupt = interrupt});
  state->editor = el_init("quire", stdin, stdout, stderr);
  state->history = history_init();
  if (state->editor == nullptr || state->history == nullptr) return nullptr;
  EditLine* editor = state->editor;
  el_set(editor, EL_CLIENTDATA, state.get());
  el_set(editor, EL_SIGNAL, 0);
  el_set(editor, EL_EDITOR, "emacs");
  el_set(editor, EL_PROMPT_ESC, State::prompt_text, kPromptMark);
  el_set(editor, EL_GETCFN, State::read_character);
  // Between lines, nothing is echoed either, and keys are kept for the next one. A line break that was pasted as CR LF must
  // not arrive as two.
  el_set(editor, EL_SETTY, "-x", "-echo", "-icanon", "-icrnl", "-inlcr", nullptr);
  el_set(editor, EL_SETTY, "-d", "-icrnl", "-inlcr", nullptr);
  HistEvent event;
  history(state->history, &event, H_SETSIZE, static_cast<int>(HistoryFile::kEntries));
  history(state->history, &event, H_SETUNIQUE, 1);
  el_set(editor, EL_HIST, history, state->history);
  state->bind_keys();
  return std::unique_ptr<LineEditor>(new LineEditor(std::move(state)));
}

LineEditor::Event LineEditor::next(std::string_view prompt, std::string& line) {
  state_->prompt = marked_prompt(prompt);
  state_->prompt_cells = display_width(prompt);
  state_->columns = terminal_columns(stdout);
  state_->stopped = false;
  if (state_->ended) return Event::kEnd;
  state_->terminal.take_change();
  el_resize(state_->editor);  // the window may have changed during an answer
  int bytes = 0;
  const char* text = el_gets(state_->editor, &bytes);
  if (text != nullptr && bytes > 0) {
    line.assign(text, static_cast<size_t>(bytes));
    if (line.ends_with('\n')) line.pop_back();
    return Event::kLine;
  }
  std::fputs("\n", stdout);
  std::fflush(stdout);
  return state_->stopped ? Event::kInterrupted : Event::kEnd;
}

void LineEditor::remember(const std::string& entry) {
  HistEvent event;
  history(state_->history, &event, H_ENTER, entry.c_str());
}

}  // namespace quire
