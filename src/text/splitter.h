// Hand-written equivalents of the pre-tokenizer patterns that most byte-level vocabularies use. Each is linear in the
// length of the text, whatever the text; tests/full/tokenizer_differential.py compares them with the patterns.
//
// Pure functions, any thread. Texts are valid UTF-8.
#pragma once

#include <cstddef>
#include <string_view>

namespace quire {

// The patterns, in the words of tokenizer.json.
inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kTrailingSpacePattern = R"(\s+$)";

// The end of the match of kGpt2Pattern that begins at `at` < text.size(). It matches everywhere.
size_t gpt2_match_end(std::string_view text, size_t at);

// The same for kLlama3Pattern (`max_digits` 3) and kQwen2Pattern (1).
size_t llama3_match_end(std::string_view text, size_t at, int max_digits);

// The first match of kTrailingSpacePattern that begins at or after `from`; `$` is the end of a line, as in Oniguruma.
struct TextRange {
  size_t begin = 0;
  size_t end = 0;
};
TextRange find_trailing_space(std::string_view text, size_t from);  // begin == npos: none

}  // namespace quire
