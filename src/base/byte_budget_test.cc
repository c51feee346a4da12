#include "base/byte_budget.h"

#include <gtest/gtest.h>

#include <thread>
#include <utility>
#include <vector>

namespace quire {
namespace {

TEST(ByteBudget, GivesNoMoreThanItHas) {
  ByteBudget budget(100);
  ByteHold first(&budget);
  EXPECT_TRUE(first.grow(60));
  ByteHold second(&budget);
  EXPECT_FALSE(second.grow(41));
  EXPECT_TRUE(second.grow(40));
  EXPECT_EQ(budget.used(), 100);
  EXPECT_EQ(budget.refused(), 1);
  first.release();
  EXPECT_EQ(budget.used(), 40);
}

TEST(ByteBudget, CountsUntilTheHolderIsGoneWhereverItMoved) {
  ByteBudget budget(100);
  {
    ByteHold held(&budget);
    ASSERT_TRUE(held.grow(30));
    ByteHold moved(std::move(held));
    ByteHold absorbing(&budget);
    ASSERT_TRUE(absorbing.grow(5));
    absorbing.absorb(std::move(moved));
    EXPECT_EQ(absorbing.bytes(), 35);
    EXPECT_EQ(budget.used(), 35);
    absorbing = ByteHold(&budget);
    EXPECT_EQ(budget.used(), 0);
    ASSERT_TRUE(absorbing.grow(7));
  }
  EXPECT_EQ(budget.used(), 0);
}

TEST(ByteBudget, GivesNothingWhileClosed) {
  ByteBudget budget(100);
  ByteHold held(&budget);
  budget.close(true);
  EXPECT_FALSE(held.grow(1));
  budget.close(false);
  EXPECT_TRUE(held.grow(1));
}

TEST(ByteBudget, IsExactFromManyThreads) {
  ByteBudget budget(1000);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&budget] {
      for (int i = 0; i < 10'000; ++i) {
        ByteHold held(&budget);
        if (held.grow(300)) {
          EXPECT_EQ(held.bytes(), 300);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(budget.used(), 0);
}

}  // namespace
}  // namespace quire
