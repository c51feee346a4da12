#include "cli/json_request.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

std::string error_of(std::string_view line) {
  const Result<JsonRequest> request = JsonRequest::parse(line);
  return request.ok() ? "" : request.status().message();
}

JsonRequest parsed(std::string_view line) {
  Result<JsonRequest> request = JsonRequest::parse(line);
  EXPECT_TRUE(request.ok()) << request.status().message();
  return std::move(*request);
}

TEST(JsonRequest, RefusesWhatIsNoJsonObject) {
  EXPECT_NE(error_of("").find("not valid JSON"), std::string::npos);
  EXPECT_NE(error_of("{\"a\": }").find("not valid JSON: parse error"), std::string::npos);
  EXPECT_NE(error_of("{} {}").find("not valid JSON"), std::string::npos);
  EXPECT_NE(error_of("{\"a\": \"\xFF\"}").find("not valid JSON"), std::string::npos);
  EXPECT_EQ(error_of("[1]"), "a request is one JSON object a line");
}

TEST(JsonRequest, RefusesDeepNestingBeforeItCanOverflowTheStack) {
  const std::string deep = "{\"a\": " + std::string(1000000, '[') + std::string(1000000, ']') + "}";
  EXPECT_EQ(error_of(deep), "the JSON nests more than 64 levels deep");
  const std::string in_string = "{\"a\": \"" + std::string(1000, '[') + "\\\"" + std::string(1000, '{') + "\"}";
  EXPECT_EQ(error_of(in_string), "");
}

// Which of the two was meant is anybody's guess.
TEST(JsonRequest, RefusesAKeyThatIsNamedTwice) {
  EXPECT_EQ(error_of(R"({"prompt": "a", "prompt": "b"})"), "the JSON names the key \"prompt\" twice in one object");
  EXPECT_EQ(error_of(R"({"kwargs": {"a": [{"b": 1, "b": 1}]}})"), "the JSON names the key \"b\" twice in one object");
  EXPECT_EQ(error_of(R"({"a": {"b": 1}, "b": 1})"), "");
}

TEST(JsonRequest, TakesFieldsByTypeAndNamesTheRest) {
  JsonRequest request = parsed(R"({"text": "hi", "ids": [1, 2], "x": 1, "tools": null, "y": 2})");
  EXPECT_EQ(*request.take_text("text"), "hi");
  EXPECT_EQ(*request.take_text("text"), std::nullopt);
  EXPECT_EQ(*request.take_ids("ids"), (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(*request.take_array("tools"), std::nullopt);
  EXPECT_EQ(request.finish().message(),
            "the request has \"x\", \"y\", which are no keys of this command (`--help` lists them)");
  EXPECT_FALSE(parsed(R"({"text": 1})").take_text("text").ok());
  EXPECT_EQ(*parsed(R"({"ids": [1.0]})").take_ids("ids"), std::vector<int32_t>{1});
  EXPECT_FALSE(parsed(R"({"ids": 1})").take_ids("ids").ok());
  EXPECT_FALSE(parsed(R"({"ids": [1.5]})").take_ids("ids").ok());
  EXPECT_FALSE(parsed(R"({"ids": [-1]})").take_ids("ids").ok());
  EXPECT_FALSE(parsed(R"({"ids": [2147483648]})").take_ids("ids").ok());
  EXPECT_FALSE(parsed(R"({"ids": [18446744073709551615]})").take_ids("ids").ok());
  EXPECT_FALSE(parsed(R"({"messages": {}})").take_array("messages").ok());
  EXPECT_FALSE(parsed(R"({"kwargs": []})").take_object("kwargs").ok());
}

TEST(JsonRequest, KeepsKeyOrderAndTheKindOfNumbers) {
  JsonRequest request = parsed(R"({"kwargs": {"z": 1, "a": {"y": 2.0, "b": "ä"}}})");
  EXPECT_EQ(*request.take_object("kwargs"), R"({"z":1,"a":{"y":2.0,"b":"ä"}})");
}

TEST(JsonRequest, SetsOptionsByTheirTable) {
  Options options;
  JsonRequest request = parsed(R"({"temperature": 1, "top_k": 5, "seed": 18446744073709551615, "stop": "END",
                                   "stop_token_ids": [7], "ignore_eos": true})");
  EXPECT_TRUE(request.take_options(options, kRun).ok());
  EXPECT_TRUE(request.finish().ok());
  EXPECT_EQ(options.temperature, 1.0);
  EXPECT_EQ(options.top_k, 5);
  EXPECT_EQ(options.seed, 18446744073709551615u);
  EXPECT_EQ(options.stop, std::vector<std::string>{"END"});
  EXPECT_EQ(options.stop_token_ids, std::vector<int64_t>{7});
  EXPECT_TRUE(options.ignore_eos);

  EXPECT_TRUE(parsed(R"({"stop": [], "stop_token_ids": []})").take_options(options, kRun).ok());
  EXPECT_TRUE(options.stop.empty());
  EXPECT_TRUE(options.stop_token_ids.empty());
}

TEST(JsonRequest, NamesTheOptionThatIsWrong) {
  const auto error = [](std::string_view line) {
    Options options;
    return parsed(line).take_options(options, kRun).message();
  };
  EXPECT_EQ(error(R"({"top_k": 1.5})"), "\"top_k\" is 1.5; it takes a whole number of -1 to 2147483647");
  EXPECT_EQ(error(R"({"top_p": -1})"), "\"top_p\" is -1; it takes a number of 0 to 1");
  EXPECT_EQ(error(R"({"stop": [1]})"), "\"stop\" is a list of whole numbers; it takes text, or a list of texts");
  EXPECT_FALSE(error(R"({"stop": ["a", 1]})").empty());
  EXPECT_FALSE(error(R"({"temperature": null})").empty());
}

}  // namespace
}  // namespace quire
