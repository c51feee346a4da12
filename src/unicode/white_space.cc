#include "unicode/white_space.h"

#include "unicode/utf8.h"

namespace quire {

bool is_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13) || (c >= 28 && c <= 31);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

std::string_view strip_space(std::string_view text) {
  size_t begin = 0;
  while (begin < text.size()) {
    size_t after = begin;
    if (!is_space(next_code_point(text, after))) break;
    begin = after;
  }
  size_t end = text.size();
  while (end > begin) {
    const size_t before = previous_boundary(text, end);
    size_t at = before;
    if (!is_space(next_code_point(text, at))) break;
    end = before;
  }
  return text.substr(begin, end - begin);
}

}  // namespace quire
