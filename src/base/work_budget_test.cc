#include "base/work_budget.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

TEST(WorkBudget, LastsUntilCancelled) {
  WorkBudget budget;
  EXPECT_FALSE(budget.spent());
  EXPECT_TRUE(budget.why().ok());
  budget.cancel();
  EXPECT_TRUE(budget.spent());
  EXPECT_EQ(budget.why().code(), StatusCode::kCancelled);
}

TEST(WorkBudget, EndsWithItsTime) {
  EXPECT_FALSE(WorkBudget(std::chrono::hours(1)).spent());
  const WorkBudget none(std::chrono::seconds(0));
  EXPECT_EQ(none.why().code(), StatusCode::kDeadlineExceeded);
}

TEST(WorkMeter, AsksAtOnceAndThenOnceInAWhile) {
  WorkBudget budget;
  WorkMeter meter(&budget);
  EXPECT_FALSE(meter.spent());
  budget.cancel();
  size_t units = 0;
  while (!meter.spent()) ++units;
  EXPECT_GT(units, 1000u);
  EXPECT_LT(units, 100'000u);
  EXPECT_TRUE(meter.stopped());
  EXPECT_TRUE(meter.spent()) << "once spent, always spent";
  EXPECT_EQ(meter.why().code(), StatusCode::kCancelled);
  // Much work at once counts as much.
  WorkMeter other(&budget);
  EXPECT_TRUE(other.spent(1));
}

TEST(WorkMeter, NoBudgetNoEnd) {
  WorkMeter meter(nullptr);
  for (int i = 0; i < 100'000; ++i) ASSERT_FALSE(meter.spent(1000));
  EXPECT_FALSE(meter.stopped());
}

}  // namespace
}  // namespace quire
