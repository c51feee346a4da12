#include "vocab/piece_merges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "text/tokenizer.h"

namespace quire {
namespace {

using Pieces = std::vector<std::pair<std::string, float>>;
using Pairs = std::vector<std::pair<std::string, std::string>>;

TokenizerSpec scored(const Pieces& pieces) {
  TokenizerSpec spec;
  spec.model = ModelKind::kScores;
  spec.decoder = DecoderKind::kPieces;
  for (const auto& [text, score] : pieces) {
    EXPECT_TRUE(spec.vocabulary.add(text).ok());
    spec.scores.push_back(score);
  }
  return spec;
}

TokenizerSpec merged(const std::vector<std::string>& pieces, const Pairs& merges) {
  TokenizerSpec spec;
  spec.decoder = DecoderKind::kPieces;
  for (const std::string& text : pieces) EXPECT_TRUE(spec.vocabulary.add(text).ok());
  for (const auto& [left, right] : merges)
    spec.merges.push_back({spec.vocabulary.find(left), spec.vocabulary.find(right)});
  return spec;
}

void add_token(TokenizerSpec* spec, const std::string& text, bool special) {
  AddedToken token;
  token.id = spec->vocabulary.find(text);
  token.text = text;
  token.special = special;
  spec->added_tokens.push_back(token);
}

Pairs texts(const TokenizerSpec& spec, const std::vector<Merge>& merges) {
  Pairs pairs;
  for (const Merge& m : merges) pairs.emplace_back(spec.vocabulary.text(m.left), spec.vocabulary.text(m.right));
  return pairs;
}

TEST(PieceMerges, AreOrderedAsHuggingFaceOrdersThem) {
  // By score; among the pairs of one piece the longer left part first (generate_merges).
  const TokenizerSpec spec = scored({{"a", -10},
                                     {"b", -11},
                                     {"ab", -2},
                                     {"bab", -4},
                                     {"abab", -3},
                                     {"ba", -1},
                                     {"aba", -9},
                                     {"\u00e9", -12},
                                     {"\u00e9b", -5}});
  const auto merges = merges_from_scores(spec);
  ASSERT_TRUE(merges.ok()) << merges.status().message();
  EXPECT_EQ(texts(spec, *merges), (Pairs{{"b", "a"},
                                         {"a", "b"},
                                         {"aba", "b"},
                                         {"ab", "ab"},
                                         {"a", "bab"},
                                         {"ba", "b"},
                                         {"b", "ab"},
                                         {"\u00e9", "b"},
                                         {"ab", "a"},
                                         {"a", "ba"}}));
}

TEST(PieceMerges, LeaveOutWhatNeverJoins) {
  TokenizerSpec spec = scored({{"a", -10},
                               {"b", -11},
                               {"ab", -2},
                               {"\n", -12},
                               {"\n\n", -1000},
                               {"\n\n\n", -1000},
                               {"<s>", kNeverMerged},
                               {"<", -13},
                               {"s>", -14}});
  add_token(&spec, "\n\n", false);
  add_token(&spec, "\n\n\n", false);
  add_token(&spec, "<s>", true);
  EXPECT_EQ(texts(spec, *merges_from_scores(spec)), (Pairs{{"a", "b"}}));
  // A control token's spelling may hold a user-defined one, which then is ordinary text.
  ASSERT_TRUE(spec.vocabulary.add("x\n\nx").ok());
  spec.scores.push_back(kNeverMerged);
  add_token(&spec, "x\n\nx", true);
  EXPECT_EQ(texts(spec, *merges_from_scores(spec)), (Pairs{{"a", "b"}, {"\n", "\n"}}));
}

TEST(PieceMerges, RefuseScoresThatAreNoOrder) {
  const auto tied = merges_from_scores(scored({{"a", -10}, {"b", -11}, {"ab", -2}, {"ba", -2}}));
  ASSERT_FALSE(tied.ok());
  EXPECT_NE(tied.status().message().find("tokenizer.ggml.scores gives the tokens 'ab' and 'ba' one score"),
            std::string::npos);
  EXPECT_TRUE(merges_from_scores(scored({{"a", -10}, {"aa", -2}, {"aaa", -2}})).ok());
}

TEST(PieceScores, NumberPiecesInTheOrderOfTheirMerges) {
  TokenizerSpec spec = merged({"<s>", "<0x41>", "b", "a", "ab", "abb", "aab"}, {{"a", "b"}, {"ab", "b"}, {"a", "ab"}});
  add_token(&spec, "<s>", true);
  const auto scores = scores_from_merges(spec);
  ASSERT_TRUE(scores.ok()) << scores.status().message();
  EXPECT_EQ(*scores, (std::vector<float>{0, 0, -3, -4, 0, -1, -2}));
}

TEST(PieceScores, RunsOfOneCharacterMayShareAScore) {
  const TokenizerSpec spec = merged({"a", "aa", "aaa", "aaaa"},
                                    {{"aaa", "a"}, {"aa", "aa"}, {"aa", "a"}, {"a", "aaa"}, {"a", "aa"}, {"a", "a"}});
  const auto scores = scores_from_merges(spec);
  ASSERT_TRUE(scores.ok()) << scores.status().message();
  EXPECT_EQ((*scores)[2], (*scores)[3]);
  EXPECT_EQ(texts(spec, *merges_from_scores([&] {
                    TokenizerSpec back = spec;
                    back.model = ModelKind::kScores;
                    back.scores = *scores;
                    return back;
                  }())),
            texts(spec, spec.merges));
}

TEST(PieceScores, RefuseWhatScoresCannotSay) {
  const std::vector<std::string> pieces = {"a", "b", "ab", "ba", "aba", "<s>", "<", "s>"};
  TokenizerSpec control = merged(pieces, {{"<", "s>"}});
  add_token(&control, "<s>", true);
  const std::pair<TokenizerSpec, std::string_view> cases[] = {
      {merged(pieces, {{"a", "b"}, {"b", "a"}, {"a", "ba"}}), "does not join 'ab' and 'a', though 'aba' is a token"},
      {merged(pieces, {{"a", "b"}, {"ab", "a"}, {"b", "a"}, {"a", "ba"}}),
       "mixes the merges of 'aba' and 'ba' (entry 2)"},
      {merged({"a", "aa", "aaa"}, {{"a", "aa"}, {"a", "a"}, {"aa", "a"}}),
       "entry 2 of model.merges, which makes 'aaa', has a longer"},
      {merged(pieces, {{"b", "b"}}), "entry 0 of model.merges makes 'bb', which is no token"},
      {control, "entry 0 of model.merges uses '<s>', which is a control"},
  };
  for (const auto& [spec, message] : cases) {
    const auto scores = scores_from_merges(spec);
    ASSERT_FALSE(scores.ok()) << message;
    EXPECT_NE(scores.status().message().find(message), std::string::npos) << scores.status().message();
  }
}

// A vocabulary of pieces that are each joined of two others, over two characters, so that most overlap themselves. Scores
// fall with every piece, as training gives them, or are `shuffled`.
TokenizerSpec random_pieces(bool shuffled, std::mt19937* random) {
  std::vector<std::string> pieces = {"a", "b"};
  for (int i = 0; i < 40; ++i) {
    const auto pick = [&] { return pieces[std::uniform_int_distribution<size_t>(0, pieces.size() - 1)(*random)]; };
    const std::string text = pick() + pick();
    if (std::find(pieces.begin(), pieces.end(), text) == pieces.end()) pieces.push_back(text);
  }
  std::vector<float> scores(pieces.size());
  for (size_t i = 0; i < scores.size(); ++i) scores[i] = -static_cast<float>(i);
  if (shuffled) std::shuffle(scores.begin(), scores.end(), *random);
  Pieces scored_pieces;
  for (size_t i = 0; i < scores.size(); ++i) scored_pieces.emplace_back(pieces[i], scores[i]);
  return scored(scored_pieces);
}

// What would take hours: each place of a long token is a search, and so is each pair of added tokens.
TEST(PieceMerges, RefuseWhatWouldTakeTooLong) {
  const std::string longest(1024, 'b');
  EXPECT_TRUE(merges_from_scores(scored({{"a", -1}, {longest, -2}})).ok());
  const TokenizerSpec too_long = scored({{"a", -1}, {longest + "b", -2}});
  EXPECT_EQ(merges_from_scores(too_long).status().message(),
            "tokenizer.ggml.tokens has a token of 1025 bytes, 1; tokenizers with tokens of at most 1024 are converted");
  EXPECT_EQ(scores_from_merges(merged({"a", longest + "b"}, {})).status().code(), StatusCode::kUnsupported);

  TokenizerSpec many = scored({{"a", -1}, {"b", -2}});
  for (int i = 0; i < 8000; ++i) {
    add_token(&many, "a", true);
    add_token(&many, "b", false);
  }
  EXPECT_EQ(merges_from_scores(many).status().message(),
            "tokenizer.ggml.tokens has 8000 control and 8000 user-defined tokens, more than are converted");
}

TEST(PieceMerges, GiveTheIdsOfTheScores) {
  const auto seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 400; ++round) {
    const TokenizerSpec by_score = random_pieces(round % 2 == 1, &random);
    TokenizerSpec by_merge = by_score;
    by_merge.model = ModelKind::kMerges;
    by_merge.merges = *merges_from_scores(by_score);
    TokenizerSpec again = by_score;
    const auto scores = scores_from_merges(by_merge);
    ASSERT_TRUE(scores.ok()) << scores.status().message();
    again.scores = *scores;
    const auto expected = Tokenizer::create(by_score), merging = Tokenizer::create(by_merge),
               back = Tokenizer::create(again);
    ASSERT_TRUE(expected.ok() && merging.ok() && back.ok());
    for (int i = 0; i < 30; ++i) {
      std::string text;
      for (int n = 0; n < 40; ++n) text += random() % 2 == 0 ? 'a' : 'b';
      const auto ids = *(*expected)->encode(text, {});
      ASSERT_EQ(*(*merging)->encode(text, {}), ids) << text;
      ASSERT_EQ(*(*back)->encode(text, {}), ids) << text;
    }
  }
}

}  // namespace
}  // namespace quire
