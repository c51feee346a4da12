#include "text/normalizer.h"

#include <gtest/gtest.h>

#include <chrono>

namespace quire {
namespace {

// Expected values: NFC().normalize_str of tokenizers 0.23.3.
TEST(Nfc, ComposesAndReorders) {
  EXPECT_EQ(to_nfc("cafe\u0301"), "caf\u00E9");
  EXPECT_EQ(to_nfc("\u212B \u2126"), "\u00C5 \u03A9");
  EXPECT_EQ(to_nfc("a\u0301\u0323"), "\u1EA1\u0301");  // dot below first
  EXPECT_EQ(to_nfc("\u1112\u1161\u11AB"), "\uD55C");   // Hangul
  EXPECT_EQ(to_nfc("\u0344"), "\u0308\u0301");         // excluded from composition
  EXPECT_EQ(to_nfc("\u0958"), "\u0915\u093C");
  EXPECT_EQ(to_nfc("e\u0301\u0302\u0303\u0304"), "\u00E9\u0302\u0303\u0304");
  EXPECT_EQ(to_nfc("plain"), "plain");
}

// Its tables are those of Unicode 9: younger marks neither reorder nor compose.
TEST(Nfc, LeavesMarksAloneThatHuggingFaceDoesNotKnow) {
  EXPECT_EQ(to_nfc("\u1DF6\u0334"), "\u1DF6\u0334");
  EXPECT_EQ(to_nfc("\u0300\u0898"), "\u0300\u0898");
  EXPECT_EQ(to_nfc("\U00011935\U00011930"), "\U00011935\U00011930");
  EXPECT_EQ(to_nfc("\U00011938"), "\U00011938");
}

TEST(Nfc, TakesNoQuadraticTimeForRunsOfMarks) {
  std::string text = "a";
  for (int i = 0; i < 250'000; ++i) text += "\u0301\u0323";
  const auto began = std::chrono::steady_clock::now();
  const std::string composed = to_nfc(text);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5));  // quadratic: minutes
  EXPECT_EQ(composed.substr(0, 7), "\u1EA1\u0323\u0323");
}

TEST(Normalizer, AppliesStepsInOrder) {
  const auto normalizer = Normalizer::create(
      {{NormalizerStep::Kind::kPrepend, "", "\u2581"}, {NormalizerStep::Kind::kReplace, " ", "\u2581"}});
  ASSERT_TRUE(normalizer.ok());
  std::string storage;
  EXPECT_EQ(normalizer->apply("a  b", &storage),
            "\u2581"
            "a\u2581\u2581"
            "b");
  EXPECT_EQ(normalizer->apply("", &storage), "");
}

TEST(Normalizer, RefusesAnEmptyPattern) {
  EXPECT_EQ(Normalizer::create({{NormalizerStep::Kind::kReplace, "", "x"}}).status().code(), StatusCode::kUnsupported);
}

}  // namespace
}  // namespace quire
