#include "text/splitter.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "text/regex.h"
#include "unicode/utf8.h"

namespace quire {
namespace {

using Pieces = std::vector<std::string>;

template <typename MatchEnd>
Pieces split(std::string_view text, const MatchEnd& match_end) {
  Pieces pieces;
  for (size_t at = 0; at < text.size();) {
    const size_t end = match_end(text, at);
    pieces.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return pieces;
}

Pieces gpt2(std::string_view text) { return split(text, gpt2_match_end); }
Pieces llama3(std::string_view text) {
  return split(text, [](std::string_view t, size_t at) { return llama3_match_end(t, at, 3); });
}
Pieces qwen2(std::string_view text) {
  return split(text, [](std::string_view t, size_t at) { return llama3_match_end(t, at, 1); });
}

// Expected values: Split(Regex(pattern), "isolated") of tokenizers 0.23.3.
TEST(Splitter, Gpt2) {
  EXPECT_EQ(gpt2("I'm he'LL  don't\n\n x"), (Pieces{"I", "'m", " he", "'", "LL", " ", " don", "'t", "\n\n", " x"}));
  EXPECT_EQ(gpt2("a1b22 333!?"), (Pieces{"a", "1", "b", "22", " 333", "!?"}));
  EXPECT_EQ(gpt2("  "), (Pieces{"  "}));
  EXPECT_EQ(gpt2("\u00A0 x"), (Pieces{"\u00A0", " x"}));
}

TEST(Splitter, Llama3) {
  EXPECT_EQ(llama3("I'M he'Ll  12345!\r\n\n x"),
            (Pieces{"I", "'M", " he", "'Ll", " ", " ", "123", "45", "!\r\n\n", " x"}));
  EXPECT_EQ(llama3("\tword\n  \n  y"), (Pieces{"\tword", "\n  \n", " ", " y"}));
  EXPECT_EQ(llama3("'\u017F'x"), (Pieces{"'\u017F", "'x"}));
}

TEST(Splitter, Qwen2) {
  EXPECT_EQ(qwen2("x=12.5 \u4E2D\u6587"), (Pieces{"x", "=", "1", "2", ".", "5", " \u4E2D\u6587"}));
}

TEST(Splitter, TrailingSpaceEndsAtLineEnds) {
  const std::string_view text = "a  \n b \n\n  x \n ";
  Pieces found;
  for (TextRange m = find_trailing_space(text, 0); m.begin != std::string_view::npos;
       m = find_trailing_space(text, m.end)) {
    found.emplace_back(text.substr(m.begin, m.end - m.begin));
  }
  EXPECT_EQ(found, (Pieces{"  ", " \n", " \n "}));
}

// The same patterns, run by PCRE2.
TEST(Splitter, EqualsThePatterns) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 rng(seed);
  const std::string_view units[] = {"a",      "Z",      "\u00E9", "\u4E2D", "1",          "\u00BD",     "\u0663",
                                    " ",      "  ",     "\n",     "\r",     "\t",         "\u00A0",     "\u3000",
                                    "\u0085", "\u180E", "'",      "'s",     "'LL",        "'Ve",        "\u017F",
                                    ".",      "_",      "\u0301", "\u200D", "\U0001F600", "\U00031350", "\U00011F50"};
  const auto gpt2_regex = Regex::compile(kGpt2Pattern);
  const auto llama3_regex = Regex::compile(kLlama3Pattern);
  const auto qwen2_regex = Regex::compile(kQwen2Pattern);
  ASSERT_TRUE(gpt2_regex.ok() && llama3_regex.ok() && qwen2_regex.ok());
  const auto by_regex = [](const Regex& regex, std::string_view text) {
    Pieces pieces;
    Regex::Search search(regex);
    search.start(text);
    size_t begin = 0, end = 0;
    for (auto found = search.next(&begin, &end); found.ok() && *found; found = search.next(&begin, &end)) {
      pieces.emplace_back(text.substr(begin, end - begin));
    }
    return pieces;
  };
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    for (size_t i = 0, n = rng() % 12; i < n; ++i) text += units[rng() % std::size(units)];
    ASSERT_EQ(gpt2(text), by_regex(*gpt2_regex, text)) << text;
    ASSERT_EQ(llama3(text), by_regex(*llama3_regex, text)) << text;
    ASSERT_EQ(qwen2(text), by_regex(*qwen2_regex, text)) << text;
  }
}

}  // namespace
}  // namespace quire
