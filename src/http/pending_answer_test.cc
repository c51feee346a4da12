#include "http/pending_answer.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

class PendingAnswerTest : public testing::Test {
 protected:
  PendingAnswer answer(AnswerForm form = {}) {
    return PendingAnswer(HttpRequest{}, form, 100, nullptr, [this] { ++wakes_; });
  }
  int wakes_ = 0;
};

TEST_F(PendingAnswerTest, FramesEventsAsChunks) {
  PendingAnswer pending = answer();
  pending.begin_events({.content_type = "text/event-stream"});
  EXPECT_FALSE(pending.has_output());  // the head waits for the first event
  pending.send("data: 1\n\n");
  EXPECT_EQ(wakes_, 1);
  const std::string first = pending.take_output();
  EXPECT_TRUE(first.starts_with("HTTP/1.1 200 OK\r\n")) << first;
  EXPECT_TRUE(first.ends_with("\r\n\r\n9\r\ndata: 1\n\n\r\n")) << first;
  EXPECT_FALSE(pending.has_output());
  pending.send("a");
  pending.send("b");
  EXPECT_EQ(pending.take_output(), "2\r\nab\r\n");
  pending.end_events();
  EXPECT_FALSE(pending.complete());
  EXPECT_EQ(pending.take_output(), "0\r\n\r\n");
  EXPECT_TRUE(pending.complete());
}

TEST_F(PendingAnswerTest, ReplacesAStreamThatHasNotBegun) {
  PendingAnswer pending = answer();
  pending.begin_events({});
  pending.respond({.status = 500, .body = "x"});
  EXPECT_TRUE(pending.take_output().starts_with("HTTP/1.1 500 "));
  EXPECT_TRUE(pending.complete());
}

TEST_F(PendingAnswerTest, KeepsAStreamThatHasBegun) {
  PendingAnswer pending = answer();
  pending.begin_events({});
  pending.release_head();
  EXPECT_TRUE(pending.take_output().starts_with("HTTP/1.1 200 "));
  pending.respond({.status = 500});
  EXPECT_FALSE(pending.has_output());
  EXPECT_TRUE(pending.head_sent());
}

TEST_F(PendingAnswerTest, TellsOnceThatTheClientLeft) {
  PendingAnswer pending = answer();
  int calls = 0;
  pending.on_gone([&] { ++calls; });
  pending.begin_events({});
  pending.client_left();
  pending.client_left();
  pending.send("x");
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(wakes_, 0);
  EXPECT_TRUE(pending.gone());
}

TEST_F(PendingAnswerTest, IsSilentAfterACompleteAnswer) {
  PendingAnswer pending = answer();
  int calls = 0;
  pending.on_gone([&] { ++calls; });
  pending.respond({});
  pending.client_left();
  EXPECT_EQ(calls, 0);
}

TEST_F(PendingAnswerTest, NoticesTooMuchUnsent) {
  PendingAnswer pending = answer();
  pending.begin_events({});
  pending.send(std::string(100, 'x'));
  EXPECT_FALSE(pending.overflowed());
  pending.send("y");
  EXPECT_TRUE(pending.overflowed());
}

TEST_F(PendingAnswerTest, LeavesTheBodyOfHeadOut) {
  PendingAnswer pending = answer({.head_only = true});
  pending.respond({.body = "hello"});
  const std::string output = pending.take_output();
  EXPECT_NE(output.find("Content-Length: 5"), std::string::npos);
  EXPECT_TRUE(output.ends_with("\r\n\r\n"));
}

TEST_F(PendingAnswerTest, EndsStreamsOfOldClientsWithTheConnection) {
  PendingAnswer pending = answer({.chunked = false});
  pending.begin_events({});
  pending.send("x");
  pending.end_events();
  EXPECT_TRUE(pending.take_output().ends_with("Connection: close\r\n\r\nx"));
  EXPECT_TRUE(pending.complete());
  EXPECT_FALSE(pending.keep_alive());
}

}  // namespace
}  // namespace quire
