#include "cli/multiline.h"

#include <utility>

namespace quire {
namespace {

constexpr std::string_view kQuotes = R"(""")";

}  // namespace

bool MessageLines::add(std::string_view line) {
  if (std::exchange(begun_, true)) {
    text_ += '\n';
  } else if (const size_t first = line.find_first_not_of(" \t");
             first != std::string_view::npos && line.substr(first).starts_with(kQuotes)) {
    quoted_ = true;
    line.remove_prefix(first + kQuotes.size());
  }
  if (quoted_) {
    const size_t end = line.find(kQuotes);
    text_ += line.substr(0, end);
    if (end == std::string_view::npos) return false;
    text_ += line.substr(end + kQuotes.size());
    return true;
  }
  const bool goes_on = line.ends_with('\\');
  text_ += line.substr(0, line.size() - (goes_on ? 1 : 0));
  return !goes_on;
}

std::string MessageLines::take() {
  std::string text = std::move(text_);
  const bool quoted = quoted_;
  clear();
  if (!quoted) return text;
  // The quotes may stand on lines of their own.
  if (text.starts_with('\n')) text.erase(0, 1);
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

void MessageLines::clear() { *this = MessageLines(); }

}  // namespace quire
