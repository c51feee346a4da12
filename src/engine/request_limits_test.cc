#include "engine/request_limits.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace quire {
namespace {

const RequestLimits kLimits{
    .vocab_size = 50, .context = 4096, .trained_context = 4096, .kv_tokens = 4096, .max_choices = 8};

Request request_of(size_t prompt, int64_t max_tokens) {
  Request request;
  request.prompt.assign(prompt, 1);
  request.max_tokens = max_tokens;
  return request;
}

void expect_names(const Status& status, std::initializer_list<const char*> counts) {
  for (const char* count : counts) EXPECT_NE(status.message().find(count), std::string::npos) << status.message();
}

TEST(RequestLimits, PromptAndAnswerFillTheContext) {
  EXPECT_TRUE(kLimits.check(request_of(4000, 96)).ok());
  EXPECT_TRUE(kLimits.check(request_of(4095, -1)).ok());
  EXPECT_TRUE(kLimits.check(request_of(4096, 0)).ok());
  EXPECT_EQ(kLimits.answer_room(4000), 96);
}

TEST(RequestLimits, TooMuchIsRefusedWithTheCountsAndTheField) {
  std::string_view field;
  const Status sum = kLimits.check(request_of(4000, 97), &field);
  EXPECT_EQ(sum.code(), StatusCode::kOutOfRange);
  EXPECT_EQ(field, "max_tokens");
  expect_names(sum, {"4000", "97", "4097", "4096", "lower max_tokens"});
  const Status full = kLimits.check(request_of(4096, -1), &field);
  EXPECT_EQ(full.code(), StatusCode::kOutOfRange) << "the rest of the context is no token";
  EXPECT_EQ(field, "prompt");
  EXPECT_EQ(kLimits.check(request_of(4097, 0), &field).code(), StatusCode::kOutOfRange);
  EXPECT_EQ(field, "prompt");
  EXPECT_EQ(kLimits.check(request_of(300, INT64_MAX)).code(), StatusCode::kOutOfRange);
}

TEST(RequestLimits, TheLastTokenNeedsNoSlotOfTheCache) {
  RequestLimits limits = kLimits;
  limits.kv_tokens = 320;
  EXPECT_TRUE(limits.check(request_of(300, 21)).ok());
  EXPECT_EQ(limits.answer_room(300), 21);
  const Status pool = limits.check(request_of(300, 22));
  EXPECT_EQ(pool.code(), StatusCode::kOutOfRange);
  expect_names(pool, {"KV cache", "320", "300", "22", "--kv-memory"});
  EXPECT_FALSE(limits.check(request_of(321, 0)).ok());
}

TEST(RequestLimits, SaysHowALongerContextIsHad) {
  RequestLimits limits = kLimits;
  limits.context = limits.kv_tokens = 1024;
  expect_names(limits.check(request_of(2000, 5)), {"1024", "2000", "--context", "4096"});
}

TEST(RequestLimits, NonsenseIsRefusedByItsField) {
  const auto refused = [](const char* expected, const std::function<void(Request&)>& spoil) {
    Request request = request_of(5, 5);
    ASSERT_TRUE(kLimits.check(request).ok());
    spoil(request);
    std::string_view field;
    const Status status = kLimits.check(request, &field);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << expected;
    EXPECT_EQ(field, expected) << status.message();
  };
  refused("prompt", [](Request& r) { r.prompt.clear(); });
  refused("prompt", [](Request& r) { r.prompt[3] = 50; });
  refused("prompt", [](Request& r) { r.prompt[3] = -1; });
  refused("n", [](Request& r) { r.choices = 0; });
  refused("n", [](Request& r) { r.choices = 9; });
  refused("priority", [](Request& r) { r.priority = 1001; });
  refused("logit_bias", [](Request& r) { r.sampling.logit_bias = {{50, 1.0f}}; });
  refused("bad_words", [](Request& r) { r.sampling.bad_words = {{1, 50}}; });
  refused("", [](Request& r) { r.sampling.top_p = 0; });
}

}  // namespace
}  // namespace quire
