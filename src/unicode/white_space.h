// White space as Python's str.isspace() and str.strip() see it. Pure functions, any thread; texts are valid UTF-8.
#pragma once

#include <string_view>

namespace quire {

bool is_space(char32_t c);

std::string_view strip_space(std::string_view text);

}  // namespace quire
