#include "cli/suggestion.h"

#include <gtest/gtest.h>

#include <array>

namespace quire {
namespace {

constexpr std::array<std::string_view, 6> kWords = {"temperature", "top-k", "top-p", "max-tokens", "seed", "stop"};

TEST(Suggestion, FindsSlipsOfTheFinger) {
  EXPECT_EQ(nearest_word("temprature", kWords), "temperature");
  EXPECT_EQ(nearest_word("tmeperature", kWords), "temperature");
  EXPECT_EQ(nearest_word("max_tokens", kWords), "max-tokens");
  EXPECT_EQ(nearest_word("MAX-TOKEN", kWords), "max-tokens");
  EXPECT_EQ(nearest_word("sede", kWords), "seed");
  EXPECT_EQ(nearest_word("temp", kWords), "temperature");
}

TEST(Suggestion, DoesNotGuessWildly) {
  EXPECT_EQ(nearest_word("nonsense", kWords), "");
  EXPECT_EQ(nearest_word("", kWords), "");
  EXPECT_EQ(nearest_word("x", kWords), "");
  EXPECT_EQ(nearest_word(std::string(100000, 's'), kWords), "");
}

TEST(Suggestion, EndsAMessage) {
  EXPECT_EQ(did_you_mean("top_k", kWords, "--"), "; did you mean --top-k?");
  EXPECT_EQ(did_you_mean("nonsense", kWords), "");
}

}  // namespace
}  // namespace quire
