#include "cli/json_object.h"

#include <gtest/gtest.h>

#include <limits>

namespace quire {
namespace {

TEST(JsonObject, KeepsOrderAndRepairsWhatJsonCannotHold) {
  JsonObject object;
  const std::vector<std::pair<int32_t, float>> pairs = {{3, -0.5f}, {1, -std::numeric_limits<float>::infinity()}};
  object.text("z", "a\"\n\xFF").number("a", -1).unsigned_number("s", 18446744073709551615u).real("r", 0.25);
  object.pairs("top", pairs).null("n").boolean("b", true).ids("i", std::vector<int32_t>{1, 2});
  EXPECT_EQ(object.line(),
            "{\"z\":\"a\\\"\\n\xEF\xBF\xBD\",\"a\":-1,\"s\":18446744073709551615,\"r\":0.25,"
            "\"top\":[[3,-0.5],[1,null]],\"n\":null,\"b\":true,\"i\":[1,2]}");
}

TEST(JsonObject, MergesDefaultsUnderWhatIsGiven) {
  JsonObject defaults;
  defaults.text("bos_token", "<s>").boolean("add_generation_prompt", true);
  EXPECT_EQ(merge_json(defaults, R"({"add_generation_prompt": false, "x": {"b": 1, "a": 2}})"),
            R"({"bos_token":"<s>","add_generation_prompt":false,"x":{"b":1,"a":2}})");
}

TEST(MessagesJson, EscapesRolesAndContents) {
  const std::vector<std::pair<std::string, std::string>> messages = {{"user", "say \"hi\""}};
  EXPECT_EQ(messages_json(messages), R"([{"role":"user","content":"say \"hi\""}])");
}

}  // namespace
}  // namespace quire
