#include "text/added_tokens.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

using Decision = AddedTokenFinder::Decision;

AddedTokenFinder::Entry entry(std::string text, int32_t id) {
  AddedToken token;
  token.id = id;
  return {std::move(text), token};
}

// "[id]" for tokens, the text itself for what lies between, bars between segments.
std::string found(const AddedTokenFinder& finder, std::string_view text, Decision decision = Decision::kTake) {
  std::string out;
  for (const auto& s : finder.find(text, [decision](const AddedTokenFinder::Entry&, TextRange) { return decision; })) {
    if (!out.empty()) out += '|';
    out += s.id >= 0 ? "[" + std::to_string(s.id) + "]"
                     : std::string(text.substr(s.range.begin, s.range.end - s.range.begin));
  }
  return out;
}

TEST(AddedTokens, LeftmostThenLongest) {
  const auto finder = AddedTokenFinder::create({entry("ab", 1), entry("abc", 2), entry("bcd", 3), entry("a", 4)});
  ASSERT_TRUE(finder.ok());
  EXPECT_EQ(found(*finder, "xabcd"), "x|[2]|d");
  EXPECT_EQ(found(*finder, "abd"), "[1]|d");
  EXPECT_EQ(found(*finder, "aab"), "[4]|[1]");
  EXPECT_EQ(found(*finder, "bcda"), "[3]|[4]");
  EXPECT_EQ(found(*finder, "xyz"), "xyz");
  EXPECT_EQ(found(*finder, ""), "");
}

TEST(AddedTokens, PassedOverTokensHideWhatTheyOverlap) {
  const auto finder = AddedTokenFinder::create({entry("abc", 1), entry("bc", 2)});
  ASSERT_TRUE(finder.ok());
  const auto decide = [](Decision of_first) {
    return [of_first](const AddedTokenFinder::Entry& entry, TextRange) {
      return entry.token.id == 1 ? of_first : Decision::kTake;
    };
  };
  EXPECT_EQ(finder->find("abc", decide(Decision::kPassOver)).size(), 1u);
  const auto retried = finder->find("abc", decide(Decision::kRetry));
  ASSERT_EQ(retried.size(), 2u);
  EXPECT_EQ(retried[1].id, 2);
}

// Expected values: Tokenizer.encode of tokenizers 0.23.3 with the same flags.
TEST(AddedTokens, FlagsTakeSpaceAndGuardWords) {
  AddedTokenFinder::Entry left = entry("<l>", 1), right = entry("<r>", 2), word = entry("word", 3);
  left.token.lstrip = right.token.rstrip = word.token.single_word = true;
  const auto finder = AddedTokenFinder::create({left, right, word});
  ASSERT_TRUE(finder.ok());
  EXPECT_EQ(found(*finder, "a \u3000<l> b"), "a|[1]| b");
  EXPECT_EQ(found(*finder, "a <r> \n b"), "a |[2]|b");
  EXPECT_EQ(found(*finder, "<r>  <l>"), "[2]|[1]");
  EXPECT_EQ(found(*finder, "word swords word, word1 \u00E9word"), "[3]| swords |[3]|, word1 \u00E9word");
}

TEST(AddedTokens, RefusesEmptyAndOverlongOnes) {
  EXPECT_EQ(AddedTokenFinder::create({entry("", 1)}).status().code(), StatusCode::kCorrupt);
  EXPECT_EQ(
      AddedTokenFinder::create({entry(std::string(AddedTokenFinder::kMaxTokenBytes + 1, 'a'), 1)}).status().code(),
      StatusCode::kCorrupt);
}

}  // namespace
}  // namespace quire
