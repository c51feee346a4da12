// What Python's str methods ask of Unicode: classes of characters, case mapping.
#pragma once

#include <string_view>

#include "base/work_budget.h"
#include "jinja/text.h"
#include "unicode/white_space.h"

namespace quire::jinja {

bool is_line_break(char32_t c);  // what splitlines() splits at
bool is_upper(char32_t c);
bool is_lower(char32_t c);
bool is_title(char32_t c);
bool is_printable(char32_t c);  // shown as itself by repr()
inline bool is_cased(char32_t c) { return is_upper(c) || is_lower(c) || is_title(c); }

// Full case mapping: a character may become up to three. Origins of bytes carry over.
enum class Case { kUpper, kLower, kCapitalize, kTitle };
// kTitle: a cased letter after an uncased character is title case, others lower (str.title()).
void map_case(const Text& text, Case how, TextBuilder& out, WorkMeter& meter);
// The first character of the range in upper case and the rest in lower, what the filter title does to a word.
void map_word(const Text& text, size_t begin, size_t end, TextBuilder& out, WorkMeter& meter);

}  // namespace quire::jinja
