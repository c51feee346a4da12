#include "sched/queue_limits.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

TEST(QueueLimits, BoundRequestsAndTheirTokens) {
  const QueueLimits limits{.max_requests = 2, .max_tokens = 100};
  EXPECT_TRUE(limits.admit({.requests = 1, .tokens = 90}, 10).ok());
  EXPECT_EQ(limits.admit({.requests = 1, .tokens = 90}, 11).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(limits.admit({.requests = 2, .tokens = 2}, 1).code(), StatusCode::kResourceExhausted);
}

TEST(QueueLimits, TakeALongPromptWhileNothingElseWaits) {
  const QueueLimits limits{.max_requests = 2, .max_tokens = 10};
  EXPECT_TRUE(limits.admit({}, 15).ok());
  EXPECT_FALSE(limits.admit({.requests = 1, .tokens = 15}, 1).ok());
}

TEST(QueueLimits, NameTheCounts) {
  const Status full = QueueLimits{.max_requests = 3, .max_tokens = 100}.admit({.requests = 1, .tokens = 90}, 50);
  for (const char* count : {"1 ", "90", "3", "100"}) EXPECT_NE(full.message().find(count), std::string::npos);
}

}  // namespace
}  // namespace quire
