#include "json/json_value.h"

#include <gtest/gtest.h>

#include <string>

#include "json/json_writer.h"

namespace quire {
namespace {

std::string rewritten(const std::string& text) {
  const Result<JsonValue> value = JsonValue::parse(text);
  if (!value.ok()) return "error: " + value.status().message();
  std::string json;
  JsonWriter(&json).value(*value);
  return json;
}

TEST(JsonValue, KeepsWhatItReads) {
  for (const char* text : {R"({"b":1,"a":[true,false,null,"x\n\u0001\"\\"],"c":{}})", "[]", "-5", "9223372036854775807",
                           "18446744073709551615", "0.5", "2.0", "-0.0", "1e+300", R"("é😀")"}) {
    EXPECT_EQ(rewritten(text), text);
  }
}

TEST(JsonValue, RefusesWhatIsNotStrictJson) {
  for (const char* text : {"", "{", "[1,]", "{\"a\":1} x", "NaN", "Infinity", "1e999", "// c\n1", "'a'", "\"\xff\"",
                           "01", "+1", "{\"a\" 1}", "\"\\ud800\"", "[\"a\nb\"]"}) {
    EXPECT_FALSE(JsonValue::parse(text).ok()) << text;
  }
}

TEST(JsonValue, RefusesAKeyThatIsThereTwice) {
  const Result<JsonValue> value = JsonValue::parse(R"({"a":{"b":1,"c":2,"b":3}})");
  ASSERT_FALSE(value.ok());
  EXPECT_NE(value.status().message().find("\"b\" twice"), std::string::npos) << value.status().message();
}

TEST(JsonValue, LimitsDepth) {
  const auto nested = [](int depth) {
    return std::string(static_cast<size_t>(depth), '[') + std::string(static_cast<size_t>(depth), ']');
  };
  EXPECT_TRUE(JsonValue::parse(nested(JsonValue::kMaxDepth)).ok());
  EXPECT_FALSE(JsonValue::parse(nested(JsonValue::kMaxDepth + 1)).ok());
  EXPECT_FALSE(JsonValue::parse(std::string(1'000'000, '[')).ok());
}

TEST(JsonValue, LimitsTheNumberOfValues) {
  std::string text = "[0";
  for (size_t i = 0; i < JsonValue::kMaxValues; ++i) text += ",0";
  EXPECT_FALSE(JsonValue::parse(text + "]").ok());
}

TEST(JsonWriter, ReplacesWhatJsonCannotHold) {
  std::string json;
  JsonWriter(&json).begin_array().text("a\xff\xc3").number(1.0 / 0.0).number(0.1f).end_array();
  EXPECT_EQ(json, "[\"a\xEF\xBF\xBD\xEF\xBF\xBD\",null,0.1]");
}

}  // namespace
}  // namespace quire
