#include "server/log_line.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

#include "json/json_value.h"

namespace quire {
namespace {

constexpr int64_t kMs = 1767323045678;  // 2026-01-02T03:04:05.678Z

RequestRecord record() {
  return {.request_id = "r",
          .generation_id = "g",
          .method = "POST",
          .path = "/v1/completions",
          .peer = "127.0.0.1",
          .status = 200,
          .duration_ms = 1234,
          .prompt_tokens = 12,
          .cached_tokens = 8,
          .completion_tokens = 34,
          .queued_ms = 0.5,
          .ttft_ms = 120};
}

TEST(LogLine, IsJsonForPrograms) {
  std::string line = request_line(LogForm::kJson, kMs, record());
  add_loss(LogForm::kJson, 3, &line);
  const auto value = JsonValue::parse(line);
  ASSERT_TRUE(value.ok()) << line;
  EXPECT_EQ(*value->find("time")->as<std::string>(), "2026-01-02T03:04:05.678Z");
  EXPECT_EQ(*value->find("completion_tokens")->as<int64_t>(), 34);
  EXPECT_EQ(*value->find("dropped_lines_before")->as<int64_t>(), 3);
  EXPECT_TRUE(JsonValue::parse(event_line(LogForm::kJson, kMs, "ready", "a \"b\"")).ok());
}

TEST(LogLine, IsReadableForPeople) {
  setenv("TZ", "UTC", 1);
  tzset();
  std::string line = request_line(LogForm::kPeople, kMs, record());
  EXPECT_EQ(line,
            "03:04:05  200  POST /v1/completions  1.23 s  12 + 34 tokens (8 cached), first after 120 ms  127.0.0.1");
  EXPECT_EQ(request_line(LogForm::kPeople, kMs,
                         {.method = "GET", .path = "/nope", .peer = "::1", .status = 404, .error_code = "not_found"}),
            "03:04:05  404  GET /nope  0 ms  not_found  ::1");
  EXPECT_EQ(event_line(LogForm::kPeople, kMs, "ready", "model"), "03:04:05  ready: model");
  add_loss(LogForm::kPeople, 2, &line);
  EXPECT_NE(line.find("(2 lines before this one were lost)"), std::string::npos);
}

TEST(LogLine, ShowsWhatATerminalWouldObey) {
  const std::string line =
      request_line(LogForm::kPeople, kMs, {.method = "GET\x1b[2J", .path = "/\xC2\x9B\r\n" + std::string(1000, 'x')});
  EXPECT_EQ(line.find_first_of("\x1b\r\n"), std::string::npos);
  EXPECT_EQ(line.find("\xC2\x9B"), std::string::npos);
  EXPECT_LT(line.size(), 400u);
}

}  // namespace
}  // namespace quire
