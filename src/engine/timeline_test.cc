#include "engine/timeline.h"

#include <gtest/gtest.h>

#include <chrono>

namespace quire {
namespace {

TEST(Timeline, TellsARequestsStory) {
  Timeline timeline(2);
  timeline.begin("a", 1'000'000, 20);
  timeline.add(
      "a",
      {.time_ns = 3'000'000, .kind = TraceEvent::Kind::kAdmitted, .rows = 16, .differs_at = 17, .detail = "different"});
  timeline.add("a",
               {.time_ns = 4'000'000, .kind = TraceEvent::Kind::kStep, .rows = 4, .step_rows = 9, .step_sequences = 3});
  timeline.add("a", {.time_ns = 5'000'000, .kind = TraceEvent::Kind::kChoiceFinished, .choice = 1, .detail = "stop"});
  const auto json = timeline.json("a");
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(*json, R"({"id":"a","prompt_tokens":20,"events":[{"ms":0.0,"event":"queued"},)"
                   R"({"ms":2.0,"event":"admitted","cached_tokens":16,"match_ended":"different","differs_at":17},)"
                   R"({"ms":3.0,"event":"step","rows":4,"step_rows":9,"step_sequences":3},)"
                   R"({"ms":4.0,"event":"choice_finished","choice":1,"reason":"stop"}]})");
}

TEST(Timeline, ForgetsTheOldest) {
  Timeline timeline(2);
  for (const char* id : {"a", "b", "c"}) timeline.begin(id, 0, 1);
  EXPECT_EQ(timeline.json("a").status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(timeline.json("b").ok());
  timeline.add("a", {});  // too late: no harm
}

}  // namespace
}  // namespace quire
