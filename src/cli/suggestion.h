// "Did you mean": the known word that a mistyped one is nearest to, for options, commands and models alike.
// Pure functions, any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace quire {

// Empty: none is near. Case and the kind of dash do not count; up to a third of the letters may be wrong, swapped, missing or
// too many; a beginning of three letters counts as near where only one word begins so.
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> known);

// The end of a message: "; did you mean --top-k?", with `before` ("--") before the word. Empty: none is near.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> known, std::string_view before = "");

}  // namespace quire
