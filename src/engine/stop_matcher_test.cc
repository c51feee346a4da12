#include "engine/stop_matcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace quire {
namespace {

struct Outcome {
  std::string text;
  bool stopped = false;
  bool operator==(const Outcome&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
  return out << '"' << outcome.text << '"' << (outcome.stopped ? " stopped" : " ran on");
}

Outcome run(const std::vector<std::string>& stops, const std::vector<std::string>& pieces) {
  StopMatcher matcher(*StopTexts::create(stops));
  Outcome outcome;
  for (const std::string& piece : pieces) {
    if (matcher.feed(piece, outcome.text)) return {outcome.text, true};
  }
  matcher.finish(outcome.text);
  return outcome;
}

// The definition: the match that ends first, the longest of those, found by looking everywhere.
Outcome run_naively(const std::vector<std::string>& stops, const std::string& text) {
  for (size_t end = 1; end <= text.size(); ++end) {
    size_t longest = 0;
    for (const std::string& stop : stops) {
      if (std::string_view(text).substr(0, end).ends_with(stop)) longest = std::max(longest, stop.size());
    }
    if (longest > 0) return {text.substr(0, end - longest), true};
  }
  return {text, false};
}

TEST(StopMatcher, ReleasesEverythingAtOnceWithoutStops) {
  EXPECT_EQ(run({}, {"any", "thing"}), (Outcome{"anything", false}));
}

TEST(StopMatcher, EndsBeforeAStopStringInsideOnePiece) {
  EXPECT_EQ(run({"END"}, {"some text END more"}), (Outcome{"some text ", true}));
}

TEST(StopMatcher, FindsStopsAcrossPieces) {
  EXPECT_EQ(run({"\n\nUser:"}, {"Hello.", "\n", "\nUs", "er", ": hi"}), (Outcome{"Hello.", true}));
}

TEST(StopMatcher, FindsStopsAcrossHalvesOfACodePoint) {
  EXPECT_EQ(run({"\xE2\x82\xAC"}, {"10 \xE2", "\x82", "\xAC!"}), (Outcome{"10 ", true}));  // EURO SIGN
  EXPECT_EQ(run({"\xAC"}, {"\xE2\x82", "\xAC"}), (Outcome{"\xE2\x82", true}));
}

TEST(StopMatcher, ReleasesWhatTurnsOutNotToBeAStop) {
  StopMatcher matcher(*StopTexts::create({"abcd"}));
  std::string text;
  EXPECT_FALSE(matcher.feed("xabc", text));
  EXPECT_EQ(text, "x");
  EXPECT_EQ(matcher.held_bytes(), 3u);
  EXPECT_FALSE(matcher.feed("ab", text));
  EXPECT_EQ(text, "xabc");
  EXPECT_EQ(matcher.held_bytes(), 2u);
  matcher.finish(text);
  EXPECT_EQ(text, "xabcab");
}

TEST(StopMatcher, FollowsSuffixesOfOverlappingStops) {
  EXPECT_EQ(run({"aab"}, {"aaab"}), (Outcome{"a", true}));
  EXPECT_EQ(run({"abcx", "bcd"}, {"abcd"}), (Outcome{"a", true}));
  EXPECT_EQ(run({"abcd", "bc"}, {"abcd"}), (Outcome{"a", true}));  // "bc" is complete first
  EXPECT_EQ(run({"c", "abc"}, {"xabc"}), (Outcome{"x", true}));    // both end here: the longest
}

TEST(StopMatcher, RejectsAnEmptyStop) {
  const Result<StopTexts> texts = StopTexts::create({"a", ""});
  ASSERT_FALSE(texts.ok());
  EXPECT_NE(texts.status().message().find("stop string 2 is empty"), std::string::npos);
}

TEST(StopTexts, HaveALimitOfTheirNumberAndOfTheirBytes) {
  EXPECT_TRUE(StopTexts::create(std::vector<std::string>(StopTexts::kMaxTexts, "x")).ok());
  EXPECT_FALSE(StopTexts::create(std::vector<std::string>(StopTexts::kMaxTexts + 1, "x")).ok());
  EXPECT_TRUE(StopTexts::create({std::string(StopTexts::kMaxBytes, 'x')}).ok());
  EXPECT_FALSE(StopTexts::create({std::string(StopTexts::kMaxBytes, 'x'), "y"}).ok());
}

TEST(StopMatcher, AgreesWithTheDefinitionAndNeverHoldsMoreThanItMust) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto word = [&](size_t longest) {
    std::string text(1 + random() % longest, 'a');
    for (char& c : text) c = static_cast<char>('a' + random() % 3);
    return text;
  };
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> stops(random() % 4);
    for (std::string& stop : stops) stop = word(6);
    const std::string text = word(40);
    std::vector<std::string> pieces;
    for (size_t at = 0; at < text.size();) {
      pieces.push_back(text.substr(at, 1 + random() % 5));
      at += pieces.back().size();
    }
    ASSERT_EQ(run(stops, pieces), run_naively(stops, text));

    StopMatcher matcher(*StopTexts::create(stops));
    std::string released;
    std::string fed;
    for (const std::string& piece : pieces) {
      if (matcher.feed(piece, released)) break;
      fed += piece;
      size_t longest = 0;
      for (const std::string& stop : stops) {
        for (size_t n = 1; n < stop.size(); ++n) {
          if (fed.ends_with(stop.substr(0, n))) longest = std::max(longest, n);
        }
      }
      ASSERT_EQ(matcher.held_bytes(), longest);
    }
  }
}

}  // namespace
}  // namespace quire
