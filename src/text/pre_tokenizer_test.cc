#include "text/pre_tokenizer.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

using Kind = PreTokenizerStep::Kind;
using Pieces = std::vector<std::string>;

PreTokenizerStep step(Kind kind, std::string pattern = "", SplitBehavior behavior = SplitBehavior::kIsolated,
                      bool invert = false) {
  PreTokenizerStep s;
  s.kind = kind;
  s.pattern = std::move(pattern);
  s.behavior = behavior;
  s.invert = invert;
  return s;
}

Pieces split(const std::vector<PreTokenizerStep>& steps, std::string_view text, bool at_start = true) {
  const auto pre_tokenizer = PreTokenizer::create(steps);
  if (!pre_tokenizer.ok()) return {"error: " + pre_tokenizer.status().message()};
  PieceList list;
  if (const Status status = pre_tokenizer->split(text, at_start, &list); !status.ok()) return {status.message()};
  Pieces pieces;
  for (const TextRange r : list.pieces) pieces.emplace_back(list.text.substr(r.begin, r.end - r.begin));
  return pieces;
}

// Expected values: the documentation of huggingface/tokenizers' SplitDelimiterBehavior, on its own example.
TEST(PreTokenizer, SplitBehaviors) {
  const auto dash = [](SplitBehavior b) { return split({step(Kind::kLiteral, "-", b)}, "the-final--countdown"); };
  EXPECT_EQ(dash(SplitBehavior::kRemoved), (Pieces{"the", "final", "countdown"}));
  EXPECT_EQ(dash(SplitBehavior::kIsolated), (Pieces{"the", "-", "final", "-", "-", "countdown"}));
  EXPECT_EQ(dash(SplitBehavior::kMergedWithPrevious), (Pieces{"the-", "final-", "-", "countdown"}));
  EXPECT_EQ(dash(SplitBehavior::kMergedWithNext), (Pieces{"the", "-final", "-", "-countdown"}));
  EXPECT_EQ(dash(SplitBehavior::kContiguous), (Pieces{"the", "-", "final", "--", "countdown"}));
  EXPECT_EQ(split({step(Kind::kRegex, "[a-z]+", SplitBehavior::kRemoved, true)}, "ab-cd"), (Pieces{"ab", "cd"}));
}

TEST(PreTokenizer, StepsSplitWhatTheStepBeforeLeft) {
  EXPECT_EQ(split({step(Kind::kDigits), step(Kind::kRegex, std::string(kGpt2Pattern))}, "a 12b c"),
            (Pieces{"a", " ", "1", "2", "b", " c"}));
  EXPECT_EQ(split({step(Kind::kRegex, R"((?=[A-Z]))")}, "aBcD"), (Pieces{"a", "Bc", "D"}));
}

TEST(PreTokenizer, PunctuationAndDigits) {
  EXPECT_EQ(split({step(Kind::kPunctuation, "", SplitBehavior::kContiguous)}, "a,.b\u3002"),
            (Pieces{"a", ",.", "b", "\u3002"}));
  EXPECT_EQ(split({step(Kind::kDigits, "", SplitBehavior::kContiguous)}, "a12\u0663b"), (Pieces{"a", "12\u0663", "b"}));
}

TEST(PreTokenizer, MetaspacePrependsByScheme) {
  PreTokenizerStep s = step(Kind::kMetaspace, "\u2581");
  s.prepend = PrependScheme::kFirst;
  s.split = false;
  EXPECT_EQ(split({s}, "a b"), (Pieces{"\u2581"
                                       "a\u2581"
                                       "b"}));
  EXPECT_EQ(split({s}, "a b", false), (Pieces{"a\u2581"
                                              "b"}));
  EXPECT_EQ(split({s}, " a"), (Pieces{"\u2581"
                                      "a"}));  // no second mark
  s.prepend = PrependScheme::kAlways;
  s.split = true;
  EXPECT_EQ(split({s}, "a  b", false), (Pieces{"\u2581"
                                               "a",
                                               "\u2581",
                                               "\u2581"
                                               "b"}));
}

TEST(PreTokenizer, ByteStepsRewriteText) {
  EXPECT_EQ(split({step(Kind::kPrefixSpace)}, "a"), (Pieces{" a"}));
  EXPECT_EQ(split({step(Kind::kPrefixSpace)}, " a"), (Pieces{" a"}));
  // The byte 0xB2 of a character's UTF-8 looks like a superscript two to the step that follows.
  EXPECT_EQ(split({step(Kind::kByteStandIns), step(Kind::kDigits)}, "\u00F2\u0BB2"),
            (Pieces{"\u00C3", "\u00B2", "\u00E0\u00AE", "\u00B2"}));
}

TEST(PreTokenizer, NothingComesOfNothing) {
  EXPECT_EQ(split({}, "a b"), (Pieces{"a b"}));
  EXPECT_EQ(split({step(Kind::kRegex, std::string(kLlama3Pattern))}, ""), (Pieces{}));
}

TEST(PreTokenizer, RefusesEmptyPatterns) {
  EXPECT_FALSE(PreTokenizer::create({step(Kind::kLiteral)}).ok());
  EXPECT_FALSE(PreTokenizer::create({step(Kind::kMetaspace)}).ok());
}

}  // namespace
}  // namespace quire
