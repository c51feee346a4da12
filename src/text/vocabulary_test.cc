#include "text/vocabulary.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

TEST(Vocabulary, FindsWhatWasAdded) {
  Vocabulary vocabulary;
  constexpr int32_t kCount = 5000;
  for (int32_t i = 0; i < kCount; ++i) ASSERT_TRUE(vocabulary.add("token" + std::to_string(i)).ok());
  ASSERT_EQ(vocabulary.size(), kCount);
  for (int32_t i = 0; i < kCount; ++i) {
    EXPECT_EQ(vocabulary.find("token" + std::to_string(i)), i);
    EXPECT_EQ(vocabulary.text(i), "token" + std::to_string(i));
  }
  EXPECT_EQ(vocabulary.find("token"), -1);
  EXPECT_EQ(vocabulary.find(""), -1);
}

TEST(Vocabulary, HoldsAnyBytes) {
  Vocabulary vocabulary;
  const std::string nul("a\0b", 3);
  ASSERT_TRUE(vocabulary.add(nul).ok());
  EXPECT_EQ(vocabulary.find(nul), 0);
  EXPECT_EQ(vocabulary.find("a"), -1);
}

TEST(Vocabulary, HiddenAndEmptyTokensAreNotFound) {
  Vocabulary vocabulary;
  ASSERT_TRUE(vocabulary.add("<s>", Vocabulary::Lookup::kHidden).ok());
  ASSERT_TRUE(vocabulary.add("").ok());
  ASSERT_TRUE(vocabulary.add("").ok());
  EXPECT_EQ(vocabulary.find("<s>"), -1);
  EXPECT_EQ(vocabulary.find(""), -1);
  EXPECT_EQ(vocabulary.text(0), "<s>");
  EXPECT_EQ(vocabulary.text(2), "");
}

TEST(Vocabulary, RefusesTheSameTextTwice) {
  Vocabulary vocabulary;
  ASSERT_TRUE(vocabulary.add("a").ok());
  const Status status = vocabulary.add("a");
  EXPECT_EQ(status.code(), StatusCode::kCorrupt);
  EXPECT_NE(status.message().find("tokens 0 and 1"), std::string::npos) << status.message();
}

TEST(Vocabulary, StaysCompact) {
  constexpr size_t kCount = 150'000;
  Vocabulary vocabulary;
  vocabulary.reserve(kCount, kCount * 8);
  for (size_t i = 0; i < kCount; ++i) ASSERT_TRUE(vocabulary.add("t" + std::to_string(i)).ok());
  EXPECT_LT(vocabulary.memory_bytes(), static_cast<int64_t>(kCount) * 8 + 2'000'000);
}

}  // namespace
}  // namespace quire
