// Hostile templates: each ends in a Status, within bounded time and memory.
#include "jinja/limits.h"

#include <gtest/gtest.h>

#include "text/chat_template.h"

namespace quire {
namespace {

std::string repeated(std::string_view text, size_t count) {
  std::string result;
  result.reserve(text.size() * count);
  for (size_t i = 0; i < count; ++i) result += text;
  return result;
}

// The message with which parsing or rendering fails, or the text.
std::string outcome(std::string_view source) {
  const auto chat_template = ChatTemplate::parse(source);
  if (!chat_template.ok()) return chat_template.status().message();
  const auto rendered =
      chat_template->render({.messages = "[]", .tools = {}, .kwargs = "{}", .now = std::optional<int64_t>(0)});
  return rendered.ok() ? rendered->text : rendered.status().message();
}

void expect_outcome(std::string_view source, std::string_view part) {
  EXPECT_NE(outcome(source).find(part), std::string::npos) << source.substr(0, 80) << ": " << outcome(source);
}

TEST(Limits, NestingOfTheSource) {
  const std::string deep[] = {
      "{{ " + repeated("(", 100'000),
      "{{ " + repeated("[", 100'000),
      "{{ " + repeated("{1:", 100'000),
      "{{ " + repeated("not ", 100'000) + "1 }}",
      "{{ " + repeated("-", 100'000) + "1 }}",
      "{{ 1" + repeated("+1", 100'000) + " }}",
      "{{ 1" + repeated(" and 1", 100'000) + " }}",
      "{{ 1" + repeated(" if 1", 100'000) + " }}",
      "{{ 1" + repeated(" if 1 else 1", 100'000) + " }}",
      "{{ a" + repeated(".b", 100'000) + " }}",
      "{{ a" + repeated("[0]", 100'000) + " }}",
      "{{ a" + repeated("()", 100'000) + " }}",
      "{{ a" + repeated("|upper", 100'000) + " }}",
      repeated("{% if 1 %}", 100'000),
      repeated("{% for a in b %}", 100'000),
      repeated("{% filter upper %}", 100'000),
      repeated("{{", 500'000),
  };
  for (const auto& source : deep) expect_outcome(source, "deeper than 200 levels");
}

TEST(Limits, NestingJustAllowedRuns) {
  EXPECT_EQ(outcome("{{ " + repeated("(", 90) + "1" + repeated(")", 90) + " }}"), "1");
  EXPECT_EQ(outcome(repeated("{% if 1 %}", 150) + "x" + repeated("{% endif %}", 150)), "x");
  EXPECT_EQ(outcome("{{ 1" + repeated("+1", 150) + " }}"), "151");
}

TEST(Limits, SizeOfTheSource) {
  expect_outcome(std::string(jinja::kMaxSourceBytes + 1, 'a'), "takes at most");
  EXPECT_EQ(outcome(std::string(1 << 20, 'a')), std::string(1 << 20, 'a'));
  expect_outcome(repeated("{%", 500'000), "expected the name of a tag");
}

TEST(Limits, SourceWithManyBranchesParsesInReasonableTime) {
  EXPECT_EQ(outcome("{% if 0 %}" + repeated("{% elif 0 %}", 50'000) + "{% endif %}ok"), "ok");
  std::string names;
  for (int i = 0; i < 10'000; ++i) {
    const std::string name = "a" + std::to_string(i);
    names += "{% set " + name + " = 1 %}{% if " + name + " %}{% set b" + name + " = 2 %}{% endif %}";
  }
  EXPECT_EQ(outcome(names + "ok"), "ok");
}

TEST(Limits, UnfinishedTags) {
  expect_outcome("{{ 'abc", "a string does not end");
  expect_outcome("{# abc", "missing end of comment");
  expect_outcome("{% raw %}abc", "missing end of raw block");
  expect_outcome("{% if 1 %}", "'if' is still open");
  expect_outcome("{{ 1", "expected '}}', got the end of the template");
  expect_outcome("{{ [1", "expected ',', got the end of the template");
}

TEST(Limits, Recursion) {
  expect_outcome("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "recurses deeper");
  expect_outcome(
      "{% macro f() %}{% filter upper %}{{ g() }}{% endfilter %}{% endmacro %}{% macro g() %}{{ f() }}"
      "{% endmacro %}{{ g() }}",
      "recurses deeper");
}

TEST(Limits, Steps) {
  expect_outcome("{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}", "steps");
}

TEST(Limits, Ranges) {
  expect_outcome("{{ range(1000000000)|list }}", "range spans more than 100000 items");
  expect_outcome("{{ range(0, 1000000000000000000, 1)|length }}", "range spans more than 100000 items");
  expect_outcome("{{ range(-1000000000000000000, 1000000000000000000, 1000000000000000)|length }}", "2000");
}

TEST(Limits, LongStrings) {
  for (const char* source : {
           "{{ 'x' * 1000000000 }}",
           "{% set ns = namespace(s='x') %}{% for i in range(100) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
           "{{ ('a' * 1000000)|replace('a', 'b' * 1000000) }}",
           "{{ ('a' * 1000000)|replace('', 'b' * 1000000) }}",
           "{{ ('a' * 1000000)|join('b' * 100000) }}",
           "{{ ('a' * 1000000).join('b' * 1000) }}",
           "{{ ('a\n' * 1000000)|indent(1000) }}",
       }) {
    expect_outcome(source, "longer than 64 MiB");
  }
  for (const char* source : {"{{ '%1000000000d' % 1 }}", "{{ '%.999999999f' % 1.5 }}", "{{ '%999999999s' % 1 }}"}) {
    expect_outcome(source, "too large");
  }
  expect_outcome("{{ '%99999999s' % 1 }}", "longer than 64 MiB");
  expect_outcome("{% for i in range(1000) %}{{ 'x' * 1000000 }}{% endfor %}", "the output is longer than 64 MiB");
}

TEST(Limits, LongLists) {
  expect_outcome("{{ ([1] * 100000000)|length }}", "too many items");
  expect_outcome("{% set ns = namespace(l=[1]) %}{% for i in range(99) %}{% set ns.l = ns.l + ns.l %}{% endfor %}",
                 "too long");
  expect_outcome("{{ ('a,' * 10000000).split(',')|length }}", "too many pieces");
  expect_outcome("{{ ('a\n' * 10000000).splitlines()|length }}", "too many pieces");
}

TEST(Limits, LiveMemory) {
  expect_outcome(
      "{% set ns = namespace(l=[]) %}{% for i in range(100000) %}{% set ns.l = [ns.l, 'x' * 1000000] %}{% endfor %}",
      "MiB of values");
}

TEST(Limits, DeepValuesAreFreedPrintedAndComparedWithoutOverflow) {
  const std::string deep =
      "{% set ns = namespace(a=[], b=[]) %}{% for i in range(90000) %}{% set ns.a = [ns.a] %}{% set ns.b = (ns.b, 1) %}"
      "{% endfor %}";
  EXPECT_EQ(outcome(deep + "ok"), "ok");
  for (const char* use : {"{{ ns.a }}", "{{ ns.a|tojson }}", "{{ ns.a == [ns.a] }}", "{{ ns.b < ns.b }}",
                          "{{ ns.a|string }}", "{{ '%r' % ns.a }}", "{{ ns }}"}) {
    expect_outcome(deep + use, "recurses deeper");
  }
  expect_outcome(deep + "{{ {ns.b: 1} }}", "unhashable");
  expect_outcome("{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}", "recurses deeper");
  EXPECT_EQ(outcome("{% set ns = namespace(l=none) %}{% for i in range(90000) %}{% set ns.l = namespace(l=ns.l) %}"
                    "{% endfor %}ok"),
            "ok");
  expect_outcome(
      "{% set ns = namespace(l=[1]) %}{% for i in range(90000) %}{% set ns.l = ns.l|map('int') %}{% endfor %}"
      "{{ ns.l|list }}",
      "recurses deeper");
}

TEST(Limits, Numbers) {
  EXPECT_EQ(outcome("{{ 9223372036854775807 }} {{ -9223372036854775807 - 1 }}"),
            "9223372036854775807 -9223372036854775808");
  for (const char* source :
       {"{{ 9223372036854775808 }}", "{{ 9223372036854775807 + 1 }}", "{{ -9223372036854775807 - 2 }}",
        "{{ 9223372036854775807 * 2 }}", "{{ (-9223372036854775807 - 1) // -1 }}", "{{ -(-9223372036854775807 - 1) }}",
        "{{ 1e19|int }}", "{{ '9223372036854775808'|int }}", "{{ 1e300|round(1, 'ceil') }}",
        "{{ [9223372036854775807, 1]|sum }}"}) {
    expect_outcome(source, "64 bits");
  }
  EXPECT_EQ(outcome("{{ (-9223372036854775807 - 1) % -1 }}"), "0");
  EXPECT_EQ(outcome("{{ 9223372036854775807 == 9223372036854775807.0 }}{{ 9007199254740993 > 9007199254740992.0 }}"),
            "FalseTrue");
  EXPECT_EQ(outcome("{{ 'abc'[::9223372036854775807] }}{{ 'abc'[::-9223372036854775807 - 1] }}"), "ac");
  EXPECT_EQ(outcome("{{ 'abc'[-9223372036854775807 - 1:9223372036854775807] }}"), "abc");
}

TEST(Limits, Time) {
  expect_outcome("{{ strftime_now('%9999999d') }}", "longer than");
  expect_outcome("{{ strftime_now('%Y' * 100000) }}", "more than 1024 bytes");
}

}  // namespace
}  // namespace quire
