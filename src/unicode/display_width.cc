#include "unicode/display_width.h"

#include <utf8proc.h>

#include <algorithm>

#include "unicode/utf8.h"

namespace quire {
namespace {

constexpr char32_t kReplacement = 0xFFFD;
constexpr char32_t kEmojiPresentation = 0xFE0F;

constexpr char32_t kJoiner = 0x200D;

bool is_regional(char32_t c) { return c >= 0x1F1E6 && c <= 0x1F1FF; }
bool is_skin_tone(char32_t c) { return c >= 0x1F3FB && c <= 0x1F3FF; }
bool is_later_jamo(char32_t c) { return c >= 0x1160 && c <= 0x11FF; }  // drawn within the syllable that they belong to

int cells_of(char32_t c) {
  const auto point = static_cast<utf8proc_int32_t>(c);
  const int width = utf8proc_charwidth(point);
  switch (utf8proc_category(point)) {
    case UTF8PROC_CATEGORY_CN:  // unassigned when the tables were made, or private: fonts draw something
    case UTF8PROC_CATEGORY_CO:
      return std::max(width, 1);
    default:
      return width;
  }
}

}  // namespace

Cluster first_cluster(std::string_view text) {
  Cluster cluster;
  char32_t before = 0;
  utf8proc_int32_t state = 0;
  while (cluster.bytes < text.size()) {
    const Utf8Step step = utf8_step(text.substr(cluster.bytes));
    const bool valid = step.kind == Utf8Step::Kind::kValid;
    const char32_t c = valid ? step.code_point : kReplacement;
    const bool first = cluster.bytes == 0;
    if (!first && utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(before),
                                                   static_cast<utf8proc_int32_t>(c), &state)) {
      break;
    }
    // An emoji that is drawn as text by itself becomes wide, and two letters of a flag are drawn as one.
    if (!first && (c == kEmojiPresentation || (is_regional(before) && is_regional(c)))) {
      cluster.cells = 2;
    } else if (first || (before != kJoiner && !is_skin_tone(c) && !is_later_jamo(c))) {
      cluster.cells += cells_of(c);
    }
    cluster.bytes += step.length;
    before = c;
  }
  return cluster;
}

size_t display_width(std::string_view text) {
  size_t cells = 0;
  while (!text.empty()) {
    const Cluster cluster = first_cluster(text);
    cells += static_cast<size_t>(cluster.cells);
    text.remove_prefix(cluster.bytes);
  }
  return cells;
}

}  // namespace quire
