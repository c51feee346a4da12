#include "text/bpe.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "text/test_specs.h"

namespace quire {
namespace {

using testing_specs::add_merges;
using testing_specs::byte_level_spec;
using testing_specs::score_spec;

std::vector<std::string> tokens(const TokenizerSpec& spec, const BpeModel& model, std::string_view piece) {
  BpeModel::Workspace workspace;
  std::vector<int32_t> ids;
  model.encode(piece, &workspace, &ids);
  std::vector<std::string> texts;
  for (const int32_t id : ids) texts.emplace_back(spec.vocabulary.text(id));
  return texts;
}

using Tokens = std::vector<std::string>;

TEST(Bpe, LowestRankFirstThenLeftmost) {
  TokenizerSpec spec = byte_level_spec();
  add_merges({{"b", "c"}, {"a", "b"}, {"ab", "c"}, {"a", "a"}}, &spec);
  const auto model = BpeModel::create(&spec);
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(tokens(spec, *model, "abc"), (Tokens{"a", "bc"}));
  EXPECT_EQ(tokens(spec, *model, "aaa"), (Tokens{"aa", "a"}));
  EXPECT_EQ(tokens(spec, *model, "ab"), (Tokens{"ab"}));
  EXPECT_EQ(tokens(spec, *model, "z"), (Tokens{"z"}));
}

TEST(Bpe, IgnoreMergesTakesWholePieces) {
  TokenizerSpec spec = byte_level_spec();
  testing_specs::add_token("xyz", &spec);
  spec.ignore_merges = true;
  const auto model = BpeModel::create(&spec);
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(tokens(spec, *model, "xyz"), (Tokens{"xyz"}));
  EXPECT_EQ(tokens(spec, *model, "xyzz"), (Tokens{"x", "y", "z", "z"}));
}

TEST(Bpe, BytesWithoutTokenAreDroppedOrUnknown) {
  TokenizerSpec spec;
  spec.byte_level = true;
  testing_specs::add_token("a", &spec);
  const auto dropping = BpeModel::create(&spec);
  ASSERT_TRUE(dropping.ok());
  EXPECT_EQ(tokens(spec, *dropping, "abba"), (Tokens{"a", "a"}));
  spec.unknown_id = testing_specs::add_token("?", &spec);
  EXPECT_EQ(tokens(spec, *dropping, "abba"), (Tokens{"a", "?", "?", "a"}));
  spec.fuse_unknown = true;
  EXPECT_EQ(tokens(spec, *dropping, "abba"), (Tokens{"a", "?", "a"}));
}

TEST(Bpe, HighestScoreFirst) {
  TokenizerSpec spec = score_spec({"he", "ll", "o", "l", "h", "e", "hell", "lo", "hello"});
  const auto model = BpeModel::create(&spec);
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(tokens(spec, *model, "hello"), (Tokens{"hello"}));  // he, ll, then hell before lo
  EXPECT_EQ(tokens(spec, *model, "helo"), (Tokens{"he", "lo"}));
}

TEST(Bpe, ScoresFallBackToBytes) {
  TokenizerSpec spec = score_spec({"a",
                                   "\u00E9"
                                   "a"});
  const auto model = BpeModel::create(&spec);
  ASSERT_TRUE(model.ok());
  // "éa" is a token, but é is not, so there is no pair to join.
  EXPECT_EQ(tokens(spec, *model,
                   "\u00E9"
                   "a"),
            (Tokens{"<0xC3>", "<0xA9>", "a"}));
}

TEST(Bpe, CutsAtSpacesUnlessATokenSpansThem) {
  const std::string mark(testing_specs::kSpaceMark);
  TokenizerSpec spec = score_spec({"\u2581", "a", "b", ">", ">\u2581"});
  const auto model = BpeModel::create(&spec);
  ASSERT_TRUE(model.ok());
  const std::string piece = "a" + mark + mark + "b>" + mark + "b" + mark + "a";
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < piece.size();) {
    const size_t end = model->independent_end(piece, begin);
    parts.push_back(piece.substr(begin, end - begin));
    begin = end;
  }
  EXPECT_EQ(parts, (std::vector<std::string>{"a", mark + mark + "b>" + mark + "b", mark + "a"}));
}

// The definition, in quadratic time: while some pair merges, the pair of lowest rank, leftmost.
Tokens by_definition(Tokens symbols, const std::map<std::pair<std::string, std::string>, int>& ranks) {
  for (;;) {
    int best = -1;
    size_t where = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto it = ranks.find({symbols[i], symbols[i + 1]});
      if (it != ranks.end() && (best < 0 || it->second < best)) {
        best = it->second;
        where = i;
      }
    }
    if (best < 0) return symbols;
    symbols[where] += symbols[where + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(where) + 1);
  }
}

TEST(Bpe, EqualsTheDefinition) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 rng(seed);
  for (int round = 0; round < 200; ++round) {
    TokenizerSpec spec = byte_level_spec();
    std::vector<std::string> known = {"a", "b", "c"};
    std::map<std::pair<std::string, std::string>, int> ranks;
    for (int i = 0; i < 20; ++i) {
      const std::string left = known[rng() % known.size()], right = known[rng() % known.size()];
      if (left.size() + right.size() > 8 || ranks.contains({left, right})) continue;
      ranks[{left, right}] = static_cast<int>(spec.merges.size());
      if (spec.vocabulary.find(left + right) < 0) known.push_back(left + right);
      add_merges({{left, right}}, &spec);
    }
    const auto model = BpeModel::create(&spec);
    ASSERT_TRUE(model.ok());
    for (int n = 0; n < 20; ++n) {
      std::string piece;
      Tokens symbols;
      for (size_t i = 0, size = 1 + rng() % 30; i < size; ++i) {
        piece += static_cast<char>('a' + rng() % 3);
        symbols.emplace_back(1, piece.back());
      }
      ASSERT_EQ(tokens(spec, *model, piece), by_definition(symbols, ranks)) << piece;
    }
  }
}

TEST(Bpe, RefusesSpecsThatContradictThemselves) {
  TokenizerSpec outside = byte_level_spec();
  outside.merges = {{0, 9999}};
  EXPECT_EQ(BpeModel::create(&outside).status().code(), StatusCode::kCorrupt);

  TokenizerSpec no_result = byte_level_spec();
  no_result.merges = {{'a', 'b'}};
  const Status status = BpeModel::create(&no_result).status();
  EXPECT_EQ(status.code(), StatusCode::kCorrupt);
  EXPECT_NE(status.message().find("which is no token"), std::string::npos) << status.message();

  TokenizerSpec few_scores = score_spec({"a"});
  few_scores.scores.pop_back();
  EXPECT_EQ(BpeModel::create(&few_scores).status().code(), StatusCode::kCorrupt);

  TokenizerSpec not_a_number = score_spec({"a"});
  not_a_number.scores.back() = 0.0f / 0.0f;
  EXPECT_EQ(BpeModel::create(&not_a_number).status().code(), StatusCode::kCorrupt);
}

}  // namespace
}  // namespace quire
