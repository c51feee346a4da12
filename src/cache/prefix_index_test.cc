#include "cache/prefix_index.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

using Tokens = std::vector<int32_t>;

constexpr Hash128 kRoot{1, 0};
constexpr Hash128 kFirst{2, 0};
constexpr Hash128 kSecond{3, 0};
constexpr Hash128 kThird{4, 0};

TEST(PrefixIndex, TheFirstPageOfAHashStays) {
  PrefixIndex index(4, 2);
  EXPECT_TRUE(index.publish(0, kRoot, kFirst, Tokens{5, 6}));
  EXPECT_FALSE(index.publish(1, kRoot, kFirst, Tokens{5, 6}));
  EXPECT_FALSE(index.published(1));
  EXPECT_FALSE(index.publish(0, kRoot, kSecond, Tokens{7, 8})) << "a page has one hash";
  EXPECT_EQ(index.find(kFirst, Tokens{5, 6}), 0);
  EXPECT_EQ(index.find(kSecond, Tokens{7, 8}), kNoPage);
  EXPECT_TRUE(index.check().ok());
}

TEST(PrefixIndex, ACollisionIsAMiss) {
  PrefixIndex index(4, 2);
  index.publish(0, kRoot, kFirst, Tokens{5, 6});
  EXPECT_EQ(index.find(kFirst, Tokens{5, 7}), kNoPage);
}

TEST(PrefixIndex, EvictionForgetsAndRemembersThatItDid) {
  PrefixIndex index(2, 2);
  index.publish(0, kRoot, kFirst, Tokens{5, 6});
  EXPECT_FALSE(index.evicted_lately(kFirst));
  index.evict(0);
  EXPECT_EQ(index.find(kFirst, Tokens{5, 6}), kNoPage);
  EXPECT_TRUE(index.evicted_lately(kFirst));
  EXPECT_EQ(index.evictions(), 1);
  for (uint64_t i = 10; i < 40; ++i) {
    index.publish(0, kRoot, {i, 0}, Tokens{5, 6});
    index.evict(0);
  }
  EXPECT_FALSE(index.evicted_lately(kFirst)) << "old evictions are forgotten";
  EXPECT_TRUE(index.evicted_lately({39, 0}));
}

TEST(PrefixIndex, FindsTheClosestContinuation) {
  PrefixIndex index(4, 4);
  EXPECT_FALSE(index.longest_agreement(kRoot, Tokens{1, 2, 3, 4}).has_value());
  index.publish(0, kRoot, kFirst, Tokens{1, 2, 9, 9});
  index.publish(1, kRoot, kSecond, Tokens{1, 8, 8, 8});
  index.publish(2, kFirst, kThird, Tokens{1, 2, 3, 4});
  EXPECT_EQ(index.longest_agreement(kRoot, Tokens{1, 2, 3, 4}), 2);
  EXPECT_TRUE(index.check().ok());
  index.evict(0);
  EXPECT_EQ(index.longest_agreement(kRoot, Tokens{1, 2, 3, 4}), 1);
  EXPECT_TRUE(index.check().ok());
  index.evict(1);
  EXPECT_FALSE(index.longest_agreement(kRoot, Tokens{1, 2, 3, 4}).has_value());
}

}  // namespace
}  // namespace quire
