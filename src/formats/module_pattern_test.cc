#include "formats/module_pattern.h"

#include <gtest/gtest.h>

#include <string>

namespace quire {
namespace {

bool matches(const std::string& pattern, const std::string& name) {
  const auto parsed = ModulePattern::parse(pattern);
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  return parsed.ok() && parsed->matches_start(name);
}

// Expected values are those of Python's re.match.
TEST(ModulePattern, MatchesWhatToolsWrite) {
  const std::string q = "model.layers.12.self_attn.q_proj";
  EXPECT_TRUE(matches("model", q));
  EXPECT_FALSE(matches("layers", q));
  EXPECT_TRUE(matches(".*self_attn.*", q));
  EXPECT_TRUE(matches(R"(.*\.12\.self_attn\.(q|k|v)_proj$)", q));
  EXPECT_FALSE(matches(R"(.*\.12\.self_attn\.(k|v)_proj$)", q));
  EXPECT_TRUE(matches(R"(model\.layers\.[0-9]+\.(?:self_attn|mlp)\.)", q));
  EXPECT_FALSE(matches(R"(model\.layers\.[^0-9])", q));
  EXPECT_TRUE(matches(R"(^model\.layers\.\d{1,2}\.)", q));
  EXPECT_FALSE(matches(R"(^model\.layers\.\d{3}\.)", q));
  EXPECT_FALSE(matches("model$", q));
  EXPECT_TRUE(matches("(x|)model", q));
  EXPECT_TRUE(matches("m.?del(\\.layers)?\\.", "model.layers.1"));
  EXPECT_TRUE(matches("[a-m]o[-d]e", "model"));
  EXPECT_TRUE(matches("", ""));
  EXPECT_FALSE(matches("a+", "b"));
}

TEST(ModulePattern, RefusesWhatItDoesNotKnow) {
  for (const char* pattern :
       {"(", ")", "[a", "a{", "a{2,1}", "a{999}", "*a", "(?=a)", "(?P<x>a)", "\\b", "\\", "a**"}) {
    const auto parsed = ModulePattern::parse(pattern);
    ASSERT_FALSE(parsed.ok()) << pattern;
    EXPECT_NE(parsed.status().message().find("pattern"), std::string::npos) << parsed.status().message();
  }
  EXPECT_FALSE(ModulePattern::parse(std::string(100, '(')).ok());
  EXPECT_FALSE(ModulePattern::parse("((((a{64}){64}){64}){64}){64}").ok());
}

TEST(ModulePattern, TakesNoTimeForHostilePatterns) {
  const std::string name(200, 'a');
  EXPECT_FALSE(matches("(a*)*b", name));
  EXPECT_FALSE(matches("(a|a)*(a|a)*(a|a)*b", name));
}

}  // namespace
}  // namespace quire
