#include "engine/inbox.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

Submission prompt_of(size_t size) {
  Submission submission;
  submission.request.prompt.assign(size, 1);
  return submission;
}

TEST(Inbox, APromptLongerThanTheBoundIsTakenWhileNothingElseWaits) {
  Inbox inbox({.max_requests = 4, .max_tokens = 10});
  EXPECT_TRUE(inbox.submit(prompt_of(15)).ok());
  EXPECT_EQ(inbox.submit(prompt_of(1)).code(), StatusCode::kResourceExhausted);
}

TEST(Inbox, ABurstBetweenTwoStepsIsCountedWithItsTokens) {
  Inbox inbox({.max_requests = 100, .max_tokens = 30});
  EXPECT_TRUE(inbox.submit(prompt_of(20)).ok());
  EXPECT_FALSE(inbox.submit(prompt_of(20)).ok());
  EXPECT_TRUE(inbox.submit(prompt_of(10)).ok());
  EXPECT_EQ(inbox.waiting(), (QueueUse{.requests = 2, .tokens = 30}));
}

TEST(Inbox, WhatIsOnItsWayToTheSchedulerIsNotForgotten) {
  Inbox inbox({.max_requests = 2, .max_tokens = 100});
  EXPECT_TRUE(inbox.submit(prompt_of(3)).ok());
  EXPECT_EQ(inbox.take().submissions.size(), 1u);
  EXPECT_EQ(inbox.waiting(), (QueueUse{.requests = 1, .tokens = 3}));
  EXPECT_TRUE(inbox.submit(prompt_of(4)).ok());
  EXPECT_FALSE(inbox.submit(prompt_of(4)).ok());
  inbox.published({.requests = 1, .tokens = 3});  // taken, and not started yet
  EXPECT_FALSE(inbox.submit(prompt_of(4)).ok());
  inbox.published({});  // started
  EXPECT_EQ(inbox.waiting(), (QueueUse{.requests = 1, .tokens = 4}));
  EXPECT_TRUE(inbox.submit(prompt_of(4)).ok());
}

TEST(Inbox, KeepsTheOrderAndStopsForGood) {
  Inbox inbox({});
  EXPECT_TRUE(inbox.submit(prompt_of(1)).ok());
  EXPECT_TRUE(inbox.submit(prompt_of(2)).ok());
  inbox.cancel("a");
  inbox.wait(INT64_MAX);  // there is mail
  const Inbox::Mail mail = inbox.take();
  ASSERT_EQ(mail.submissions.size(), 2u);
  EXPECT_EQ(mail.submissions[1].request.prompt.size(), 2u);
  EXPECT_EQ(mail.cancellations, std::vector<std::string>{"a"});
  EXPECT_FALSE(mail.stop);
  EXPECT_TRUE(inbox.take().submissions.empty());
  inbox.stop();
  inbox.wait(INT64_MAX);
  EXPECT_TRUE(inbox.take().stop);
  EXPECT_TRUE(inbox.take().stop);
}

}  // namespace
}  // namespace quire
