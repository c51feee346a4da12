#include "text/chat_template.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

// 2026-01-02 03:04:05 UTC, where the goldens stop the clock.
constexpr int64_t kNow = 1767323045;

const std::filesystem::path kSource = QUIRE_SOURCE_DIR;

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<Json> read_lines(const std::filesystem::path& path) {
  std::vector<Json> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(Json::parse(line));
  return lines;
}

ChatInput input_of(const Json& golden) {
  ChatInput input;
  input.messages = golden.at("messages").dump();
  if (!golden.at("tools").is_null()) input.tools = golden.at("tools").dump();
  input.kwargs = golden.at("kwargs").dump();
  input.now = kNow;
  return input;
}

Result<MarkedText> render(std::string_view source, const ChatInput& input) {
  QUIRE_ASSIGN_OR_RETURN(const auto chat_template, ChatTemplate::parse(source));
  return chat_template.render(input);
}

ChatInput input_with(std::string messages, std::string kwargs = "{}") {
  return {.messages = std::move(messages), .tools = {}, .kwargs = std::move(kwargs), .now = kNow};
}

void expect_as_golden(const Json& golden, const Result<MarkedText>& rendered) {
  if (golden.contains("expected")) {
    ASSERT_TRUE(rendered.ok()) << rendered.status().message();
    EXPECT_EQ(rendered->text, golden.at("expected").get<std::string>());
    return;
  }
  ASSERT_FALSE(rendered.ok()) << "rendered " << rendered->text;
  if (golden.contains("error")) {
    const auto said = golden.at("error").get<std::string>();
    EXPECT_NE(rendered.status().message().find(said), std::string::npos) << rendered.status().message();
  }
}

// The spans of a text must be as marked_text.h promises, whatever the template.
void expect_sound_spans(const MarkedText& text) {
  size_t at = 0;
  for (size_t i = 0; i < text.spans.size(); ++i) {
    EXPECT_EQ(text.spans[i].begin, at);
    EXPECT_GT(text.spans[i].end, text.spans[i].begin);
    if (i > 0) {
      EXPECT_NE(text.spans[i].author, text.spans[i - 1].author);
    }
    at = text.spans[i].end;
  }
  EXPECT_EQ(at, text.text.size());
}

TEST(ChatTemplate, RendersRealTemplatesAsTransformersDoes) {
  const auto folder = kSource / "../shared/golden/chat";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no goldens in " << folder;
  size_t cases = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".jsonl") continue;
    const auto goldens = read_lines(entry.path());
    const auto source = read_file(folder / "templates" / goldens.at(0).at("template_file").get<std::string>());
    const auto chat_template = ChatTemplate::parse(source);
    ASSERT_TRUE(chat_template.ok()) << entry.path() << ": " << chat_template.status().message();
    for (const Json& golden : goldens) {
      SCOPED_TRACE(entry.path().stem().string() + ": " + golden.at("name").get<std::string>());
      const auto rendered = chat_template->render(input_of(golden));
      expect_as_golden(golden, rendered);
      if (rendered.ok()) expect_sound_spans(*rendered);
      ++cases;
    }
  }
  EXPECT_EQ(cases, 976u);
}

class JinjaGolden : public testing::TestWithParam<const char*> {};

TEST_P(JinjaGolden, EqualsJinja2) {
  auto goldens = read_lines(kSource / "tests/golden/jinja" / (std::string(GetParam()) + ".jsonl"));
  ASSERT_GT(goldens.size(), 1u);
  const ChatInput input = input_of(goldens[0]);
  for (size_t i = 1; i < goldens.size(); ++i) {
    const auto source = goldens[i].at("template").get<std::string>();
    SCOPED_TRACE(source);
    const auto rendered = render(source, input);
    expect_as_golden(goldens[i], rendered);
    if (rendered.ok()) expect_sound_spans(*rendered);
  }
}

INSTANTIATE_TEST_SUITE_P(Ideas, JinjaGolden,
                         testing::Values("whitespace", "literals", "expressions", "slices", "undefined", "scopes",
                                         "loops", "macros", "strings", "formatting", "filters", "tests", "json",
                                         "templates"),
                         [](const auto& idea) { return std::string(idea.param); });

TEST(ChatTemplate, KnowsWhetherItReadsParts) {
  const auto reads = [](std::string_view source) {
    const auto parsed = ChatTemplate::parse(source);
    EXPECT_TRUE(parsed.ok()) << parsed.status().message();
    return parsed.ok() && parsed->reads_parts();
  };
  EXPECT_TRUE(
      reads("{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}"
            "{% for part in m.content %}{{ part.text }}{% endfor %}{% endif %}{% endfor %}"));
  EXPECT_FALSE(reads("{% for m in messages %}{{ m.content }}{% endfor %}"));
  EXPECT_FALSE(reads("{% for m in messages %}{{ '<|user|>' + m.content }}{% endfor %}"));
  EXPECT_FALSE(reads("{% for m in messages %}{{ m.content | tojson }}{% endfor %}"));
  EXPECT_FALSE(reads("{{ raise_exception('no') }}"));
  EXPECT_FALSE(reads("nothing of it"));
}

TEST(ChatTemplate, NamesLineAndConstructItDoesNotKnow) {
  const std::pair<const char*, const char*> cases[] = {
      {"\n\n{{ x|pprint }}", "line 3: the filter 'pprint' is not among those quire knows"},
      {"\n{{ x is prime }}", "line 2: the test 'prime' is not among those quire knows"},
      {"{% frobnicate %}", "line 1: the tag 'frobnicate' is not among those quire knows"},
      {"\n{{ 1 @ 2 }}", "line 2: unexpected character '@'"},
      {"x\n{% for a in b %}\ny", "line 3: unexpected end of the template, 'for' is still open"},
  };
  for (const auto& [source, message] : cases) {
    const auto parsed = ChatTemplate::parse(source);
    ASSERT_FALSE(parsed.ok()) << source;
    EXPECT_NE(parsed.status().message().find(message), std::string::npos) << parsed.status().message();
  }
}

TEST(ChatTemplate, TellsTheLineOfAFailure) {
  const auto rendered =
      render("{% for m in messages %}\n{{ m.content }}\n{{ m.a.b }}{% endfor %}", input_with(R"([{"content": "x"}])"));
  ASSERT_FALSE(rendered.ok());
  EXPECT_EQ(rendered.status().message(), "chat template, line 3: 'dict object' has no attribute 'a'");
}

TEST(ChatTemplate, GivesTheVariablesThatTransformersGives) {
  const auto rendered =
      render("{{ tools is none }}{{ documents is none }}{{ add_generation_prompt }}{{ bos_token }}|", input_with("[]"));
  ASSERT_TRUE(rendered.ok()) << rendered.status().message();
  EXPECT_EQ(rendered->text, "TrueTrueFalse|");
}

TEST(ChatTemplate, KeepsTheOrderOfKeysAndTheLastOfEqualOnes) {
  const auto rendered = render("{{ messages|tojson }}", input_with(R"([{"b": 1, "a": 2, "b": 3}])"));
  ASSERT_TRUE(rendered.ok()) << rendered.status().message();
  EXPECT_EQ(rendered->text, R"([{"b": 3, "a": 2}])");
}

TEST(ChatTemplate, RefusesInputThatIsNotWhatItShouldBe) {
  const std::pair<ChatInput, const char*> cases[] = {
      {input_with(""), "messages: not JSON"},
      {input_with("[1"), "messages: not JSON at byte"},
      {input_with("[]", "[]"), "kwargs: expected a JSON object"},
      {input_with("[]", R"({"messages": 1})"), "kwargs: 'messages' is passed on its own"},
      {input_with("[\"\\ud800\"]"), "messages: not JSON"},
      {input_with("[\"\xff\"]"), "messages: not JSON"},
      {input_with("[1" + std::string(60, '0') + "]"), "more than 64 bits"},
      {input_with(std::string(100'000, '[')), "nested deeper than 500 levels"},
  };
  for (const auto& [input, message] : cases) {
    const auto rendered = render("x", input);
    ASSERT_FALSE(rendered.ok()) << message;
    EXPECT_NE(rendered.status().message().find(message), std::string::npos) << rendered.status().message();
  }
}

TEST(ChatTemplate, RefusesSourceThatIsNotText) {
  EXPECT_FALSE(ChatTemplate::parse("a\xff").ok());
  EXPECT_FALSE(ChatTemplate::parse("{{ '\xed\xa0\x80' }}").ok());
}

TEST(ChatTemplate, RendersFromManyThreadsAtOnce) {
  const auto chat_template =
      ChatTemplate::parse("{% macro f(x) %}<{{ x ~ 'é' }}>{% endmacro %}{% for m in messages %}{{ f(m) }}{% endfor %}");
  ASSERT_TRUE(chat_template.ok()) << chat_template.status().message();
  std::vector<std::thread> threads;
  std::vector<std::string> texts(4);
  for (std::string& text : texts) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) text = chat_template->render(input_with(R"(["a", 1, [2]])"))->text;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : texts) EXPECT_EQ(text, "<aé><1é><[2]é>");
}

TEST(ChatTemplate, ReadsTheClockWhereNoneIsPinned) {
  ChatInput input = input_with("[]");
  input.now.reset();
  const auto rendered = render("{{ strftime_now('%Y') }}", input);
  ASSERT_TRUE(rendered.ok()) << rendered.status().message();
  EXPECT_GE(std::stoi(rendered->text), 2025);
}

}  // namespace
}  // namespace quire
