#include "cache/page_pool.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

TEST(PagePool, TakesUnfindablePagesFirstThenTheLeastRecentlyUsed) {
  PagePool pool(4, 16);
  for (PageId page = 0; page < 4; ++page) EXPECT_EQ(pool.take(), page);
  EXPECT_EQ(pool.free_pages(), 0);
  pool.drop(2, true);
  pool.drop(0, true);
  pool.drop(3, false);
  pool.drop(1, false);
  EXPECT_EQ(pool.take(), 1);
  EXPECT_EQ(pool.take(), 3);
  EXPECT_EQ(pool.take(), 2);
  EXPECT_EQ(pool.take(), 0);
}

TEST(PagePool, RevivesAPageFromTheMiddleOfTheList) {
  PagePool pool(5, 16);
  pool.add_reference(2);
  EXPECT_EQ(pool.free_pages(), 4);
  EXPECT_TRUE(pool.check({0, 0, 1, 0, 0}).ok());
  pool.add_reference(2);
  pool.drop(2, true);
  EXPECT_EQ(pool.references(2), 1);
  EXPECT_TRUE(pool.check({0, 0, 1, 0, 0}).ok());
  EXPECT_FALSE(pool.check({0, 0, 2, 0, 0}).ok());
}

TEST(PagePool, RunsAreConsecutive) {
  PagePool pool(7, 16);
  EXPECT_EQ(pool.take_run(3), 0);
  EXPECT_EQ(pool.take_run(3), 3);
  EXPECT_EQ(pool.take_run(3), kNoPage);
  EXPECT_EQ(pool.take_run(8), kNoPage);
  pool.drop(1, false);
  pool.drop(2, false);
  EXPECT_EQ(pool.take_run(3), kNoPage) << "three free pages that are not consecutive";
  pool.drop(3, false);
  EXPECT_EQ(pool.take_run(3), 1);
  EXPECT_TRUE(pool.check({1, 1, 1, 1, 1, 1, 0}).ok());
}

TEST(PagePool, LiveSlotsFollowReferences) {
  PagePool pool(3, 16);
  const PageId page = pool.take();
  pool.set_filled(page, 16);
  EXPECT_EQ(pool.live_slots(), 16);
  pool.add_reference(page);
  EXPECT_EQ(pool.live_slots(), 16) << "shared slots count once";
  pool.drop(page, true);
  pool.drop(page, true);
  EXPECT_EQ(pool.live_slots(), 0);
  pool.add_reference(page);
  EXPECT_EQ(pool.live_slots(), 16) << "a revived page still holds its tokens";
}

TEST(PagePoolDeathTest, MisuseIsABug) {
  PagePool pool(1, 16);
  EXPECT_DEATH(pool.drop(0, false), "references > 0");
  pool.take();
  EXPECT_DEATH(pool.take(), "front_ != kNoPage");
}

}  // namespace
}  // namespace quire
