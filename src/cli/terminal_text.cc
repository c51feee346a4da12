#include "cli/terminal_text.h"

#include <algorithm>
#include <array>
#include <utility>

#include "unicode/display_width.h"
#include "unicode/utf8.h"

namespace quire {
namespace {

constexpr int kTabStop = 8;
constexpr int kFewestColumns = 8;  // of a window too narrow to wrap in
constexpr std::string_view kCodeColour = "\x1b[36m";
constexpr std::string_view kPlain = "\x1b[0m";

// Closing signs that do not begin a line in Chinese and Japanese text.
constexpr std::array<std::string_view, 16> kClosing = {"、", "。", "，", "．", "！", "？", "：", "；",
                                                       "）", "」", "』", "】", "》", "〉", "ー", "…"};

bool is_closing(std::string_view cluster) {
  if (cluster.size() == 1) return std::string_view(",.!?:;)]}\"'").find(cluster[0]) != std::string_view::npos;
  return std::find(kClosing.begin(), kClosing.end(), cluster) != kClosing.end();
}

// C0 and C1: a terminal would obey them.
bool is_control(std::string_view cluster) {
  const auto first = static_cast<unsigned char>(cluster[0]);
  if (first < 0x20 || first == 0x7F) return true;
  return cluster.size() >= 2 && first == 0xC2 && static_cast<unsigned char>(cluster[1]) < 0xA0;
}

// The run of one sign that a code block begins and ends with; empty: none.
std::string_view fence_of(std::string_view word) {
  if (!word.starts_with("```") && !word.starts_with("~~~")) return {};
  return word.substr(0, std::min(word.find_first_not_of(word[0]), word.size()));
}

}  // namespace

std::string TerminalText::push(std::string_view piece, int columns) {
  columns_ = std::max(columns, kFewestColumns);
  held_ += piece;
  take_held(false);
  return std::exchange(out_, {});
}

std::string TerminalText::finish(int columns) {
  columns_ = std::max(columns, kFewestColumns);
  take_held(true);
  flush_word();
  if (column_ > 0) {
    end_line();
  } else if (coloured_) {
    out_ += kPlain;
  }
  return std::exchange(out_, {});
}

void TerminalText::take_held(bool all) {
  std::string_view rest = held_;
  while (!rest.empty()) {
    const Cluster cluster = first_cluster(rest);
    if (cluster.bytes == rest.size() && !all) break;
    take(rest.substr(0, cluster.bytes), cluster.cells);
    rest.remove_prefix(cluster.bytes);
  }
  held_ = std::string(rest);
}

void TerminalText::take(std::string_view cluster, int cells) {
  if (cluster == "\n" || cluster == "\r\n") return take_newline();
  if (cluster == "\r") return;
  if (cluster == " " || cluster == "\t") {
    flush_word();
    spaces_ += cluster;
    return;
  }
  const bool shown_otherwise = is_control(cluster) || !is_valid_utf8(cluster);
  const std::string_view text = shown_otherwise ? kReplacementCharacter : cluster;
  const bool wide = cells > 1;
  if ((wide || word_may_end_) && !is_closing(text)) flush_word();
  word_ += text;
  word_cells_ += shown_otherwise ? 1 : cells;
  word_may_end_ = wide || (word_may_end_ && is_closing(text));
}

void TerminalText::take_newline() {
  flush_word();
  spaces_.clear();
  end_line();
  line_is_empty_ = true;
  if (std::exchange(fence_closes_, false)) fence_.clear();
}

// The first word of a line may open or close a code block.
void TerminalText::note_fence() {
  const std::string_view fence = fence_of(word_);
  if (fence.empty()) return;
  if (fence_.empty()) {
    if (word_.find('`', fence.size()) == std::string::npos) fence_ = fence;  // else it is code within a line
  } else if (fence.size() == word_.size() && fence.size() >= fence_.size() && fence[0] == fence_[0]) {
    fence_closes_ = true;
  }
}

void TerminalText::flush_word() {
  word_may_end_ = false;
  if (word_.empty()) return;
  if (std::exchange(line_is_empty_, false)) note_fence();
  int gap = 0;
  for (const char c : spaces_) gap += c == '\t' ? kTabStop - (column_ + gap) % kTabStop : 1;
  const bool wraps = fence_.empty() && column_ > 0 && column_ + gap + word_cells_ > columns_;
  if (wraps) {
    end_line();
    spaces_.clear();
  }
  print_spaces();
  print_word();
  word_.clear();
  word_cells_ = 0;
}

void TerminalText::print_spaces() {
  for (const char c : std::exchange(spaces_, {})) {
    const int cells = c == '\t' ? kTabStop - column_ % kTabStop : 1;
    print(std::string(static_cast<size_t>(cells), ' '), cells);
  }
}

// A word longer than the line goes on in the next one.
void TerminalText::print_word() {
  if (!fence_.empty() || column_ + word_cells_ <= columns_) return print(word_, word_cells_);
  for (std::string_view rest = word_; !rest.empty();) {
    const Cluster cluster = first_cluster(rest);
    if (column_ > 0 && column_ + cluster.cells > columns_) end_line();
    print(rest.substr(0, cluster.bytes), cluster.cells);
    rest.remove_prefix(cluster.bytes);
  }
}

void TerminalText::print(std::string_view text, int cells) {
  if (colour_ && !fence_.empty() && !coloured_) {
    out_ += kCodeColour;
    coloured_ = true;
  }
  out_ += text;
  column_ += cells;
}

void TerminalText::end_line() {
  if (std::exchange(coloured_, false)) out_ += kPlain;
  out_ += '\n';
  column_ = 0;
}

}  // namespace quire
