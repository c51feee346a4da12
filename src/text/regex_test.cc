#include "text/regex.h"

#include <gtest/gtest.h>

#include <vector>

#include "text/regex_syntax.h"

namespace quire {
namespace {

// The matches, and what went wrong.
std::vector<std::string> matches(std::string_view pattern, std::string_view text) {
  const auto regex = Regex::compile(pattern);
  if (!regex.ok()) return {"error: " + regex.status().message()};
  Regex::Search search(*regex);
  search.start(text);
  std::vector<std::string> found;
  for (size_t begin = 0, end = 0;;) {
    const auto next = search.next(&begin, &end);
    if (!next.ok()) return {"error: " + next.status().message()};
    if (!*next) return found;
    found.emplace_back(text.substr(begin, end - begin));
  }
}

using Found = std::vector<std::string>;

TEST(Regex, ReadsOnigurumaSyntax) {
  EXPECT_EQ(matches(R"(\s+$)", "a \n b\n"), (Found{" ", "\n"}));  // $ ends a line
  EXPECT_EQ(matches(R"(^.)", "a\nb"), (Found{"a", "b"}));
  EXPECT_EQ(matches(R"(a.b)", "a\nb"), (Found{}));
  EXPECT_EQ(matches(R"((?m:a.b))", "a\nb"), (Found{"a\nb"}));  // Ruby's m is dot-all
  EXPECT_EQ(matches(R"(\h+)", "xyz19aF"), (Found{"19aF"}));    // a hexadecimal digit
  EXPECT_EQ(matches(R"(x{,2}y)", "xxy"), (Found{"xxy"}));
  EXPECT_EQ(matches(R"([]a]+)", "]a"), (Found{"]a"}));
  EXPECT_EQ(matches("\\u00e9", "\u00E9"), (Found{"\u00E9"}));
  EXPECT_EQ(matches(R"((?i:'s))", "'S'\u017F"), (Found{"'S", "'\u017F"}));
  EXPECT_EQ(matches(R"(a++b)", "aab"), (Found{"aab"}));
  EXPECT_EQ(matches(R"(\p{Han}+)", "x\u4E2D\u3002"), (Found{"\u4E2D"}));  // by script, not by script extensions
}

TEST(Regex, KnowsUnicodeOfHuggingFace) {
  EXPECT_EQ(matches(R"(\p{L}+)", "\U00031350\u1C89!"), (Found{"\U00031350\u1C89"}));  // Unicode 15 and 16
  EXPECT_EQ(matches(R"([^\p{L}]+)", "\U00031350!"), (Found{"!"}));
  EXPECT_EQ(matches(R"(\P{L}+)", "\U00031350!"), (Found{"!"}));
  EXPECT_EQ(matches(R"([\P{L}]+)", "\U00031350!"), (Found{"!"}));
  EXPECT_EQ(matches(R"(\s)", "\u180E\u0085\u00A0"), (Found{"\u0085", "\u00A0"}));
  EXPECT_EQ(matches(R"(\w+)", "e\u0301\u00BD\u2160-"), (Found{"e\u0301\u00BD\u2160"}));
  EXPECT_EQ(matches(R"([\w]+)", "a\u00BD\u2160"), (Found{"a", "\u2160"}));  // Oniguruma's two readings of \w
  EXPECT_EQ(matches(R"(\b\w)", "ab c"), (Found{"a", "c"}));
}

TEST(Regex, WalksEmptyMatches) {
  EXPECT_EQ(matches(R"((?=B))", "aBcB"), (Found{"", ""}));
  EXPECT_EQ(matches(R"(a*)", "baa"), (Found{"", "aa"}));
}

TEST(Regex, RefusesByName) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"[a[bc]]", "a class within a class"},
      {"[a-z&&b]", "&&"},
      {"a{1,2}+", "quantifier after an interval"},
      {"a(?i)b", "option switch"},
      {"(?~a)", "absence"},
      {"\\G", "\\G"},
      {"(a)\\1", "\\1"},
      {"\\p{Lx}a[", "unclosed"},
      {"(*NO_JIT)a", "verb"},
      {"a\\", "trailing backslash"},
      {"\\xC3", "above 7f"},
      {"(", "does not compile"},
      {"\\p{Nonsense}", "does not compile"},
      {"\\p", "without braces"},
  };
  for (const auto& [pattern, reason] : cases) {
    const auto regex = Regex::compile(pattern);
    ASSERT_FALSE(regex.ok()) << pattern;
    EXPECT_EQ(regex.status().code(), StatusCode::kUnsupported);
    EXPECT_NE(regex.status().message().find(reason), std::string::npos) << regex.status().message();
  }
}

TEST(Regex, StopsWhatBacktracksWithoutEnd) {
  const auto found = matches(R"((a+)+\d)", std::string(40, 'a'));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].find("past its limits"), std::string::npos) << found[0];
}

// At each place it takes millions of steps, and at none too many.
TEST(Regex, StopsWhatIsSlowEverywhere) {
  const std::string text(100'000, 'a');
  const auto found = matches("(a|aa){1,22}b|.", text);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].find("past its limits"), std::string::npos) << found[0];
}

TEST(Regex, LeavesAFewSlowMatchesAlone) {
  const std::string text = std::string(18, 'a') + "-" + std::string(18, 'a');
  EXPECT_EQ(matches("(?:a|aa)+b|a+|-", text), (Found{std::string(18, 'a'), "-", std::string(18, 'a')}));
  EXPECT_EQ(matches(R"([A-Z]*[a-z]+|[A-Z]+)", std::string(1'000'000, 'A')).front().size(), 1'000'000u);
}

TEST(RegexSyntax, RefusesMoreThanPcre2CouldTake) {
  std::string pattern;
  for (int i = 0; i < 30'000; ++i) pattern += "\\w";
  const auto translated = to_pcre2_syntax(pattern);
  ASSERT_FALSE(translated.ok());
  EXPECT_NE(translated.status().message().find("character sets"), std::string::npos);
}

TEST(RegexSyntax, LeavesTheRestAlone) {
  const auto translated = to_pcre2_syntax("(?:ab|c)*?(?=d)(?<!e)[^f-g]h+i{2}{");
  ASSERT_TRUE(translated.ok());
  EXPECT_EQ(*translated, "(?:ab|c)*?(?=d)(?<!e)[^f-g]h+i{2}{");
}

}  // namespace
}  // namespace quire
