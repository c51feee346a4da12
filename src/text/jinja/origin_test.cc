// Who wrote which byte: what users say must never count as the template's words.
#include <gtest/gtest.h>

#include "text/chat_template.h"

namespace quire {
namespace {

// The rendered text with the caller's parts in [].
std::string marked(std::string_view source) {
  const auto chat_template = ChatTemplate::parse(source);
  if (!chat_template.ok()) return chat_template.status().message();
  const ChatInput input{.messages = R"([{"role": "user", "content": "Hi <x>"}, " pad ", "a,b", "é ß", "%s"])",
                        .tools = R"([{"name": "f", "n": 1}])",
                        .kwargs = R"({"bos_token": "<s>", "image_token": "<i>", "additional_special_tokens": ["<t>"],
                                      "name": "Bob", "n": 5})",
                        .now = 0};
  const auto rendered = chat_template->render(input);
  if (!rendered.ok()) return rendered.status().message();
  std::string text;
  for (const auto& span : rendered->spans) {
    const std::string part = rendered->text.substr(span.begin, span.end - span.begin);
    text += span.from_template ? part : "[" + part + "]";
  }
  return text;
}

TEST(Origin, TemplateTextAndCallersValues) {
  EXPECT_EQ(marked("<|start|>{{ messages[0].role }}\n{{ messages[0]['content'] }}<|end|>"),
            "<|start|>[user]\n[Hi <x>]<|end|>");
}

TEST(Origin, SpecialTokensAreTheTemplates) {
  EXPECT_EQ(marked("{{ bos_token }}{{ image_token }}{{ additional_special_tokens[0] }}{{ name }}"), "<s><i><t>[Bob]");
}

TEST(Origin, StringOperationsKeepIt) {
  EXPECT_EQ(marked("{{ 'a' + name + 'b' }}{{ 'c' ~ name ~ 1 }}"), "a[Bob]bc[Bob]1");
  EXPECT_EQ(marked("{{ ('<' ~ name ~ '>')[1:3] }}{{ ('<' ~ name)[::-1] }}{{ (name ~ '<')[-1] }}"), "[BoboB]<<");
  EXPECT_EQ(marked("<{{ messages[1] | trim }}|{{ messages[1].strip() }}|{{ (messages[1] ~ '  ').rstrip() }}>"),
            "<[pad]|[pad]|[ pad]>");
  EXPECT_EQ(marked("{{ messages[2].split(',')|join('-') }}"), "[a]-[b]");
  EXPECT_EQ(marked("{{ messages[2]|replace(',', ';') }}{{ 'x.y'|replace('.', name) }}"), "[a];[b]x[Bob]y");
  EXPECT_EQ(marked("{{ ('ü' ~ messages[3])|upper }}"), "Ü[É SS]");
  EXPECT_EQ(marked("{{ name.center(7, '*') }}{{ name * 2 }}"), "**[Bob]**[BobBob]");
  EXPECT_EQ(marked("{{ '%s=%s' % ('k', name) }}{{ '{}!'.format(name) }}{{ messages[4] % 'x' }}"), "k=[BobBob]!x");
  EXPECT_EQ(marked("{{ ('a\n' ~ name)|indent(1) }}"), "a\n [Bob]");
  EXPECT_EQ(marked("{{ messages[0].content|e }}"), "[Hi &lt;x&gt;]");
  EXPECT_EQ(marked("{% for c in name ~ '!' %}{{ c }}.{% endfor %}"), "[B].[o].[b].!.");
}

TEST(Origin, SurvivesCapturesAndMacros) {
  EXPECT_EQ(marked("{% set x %}<{{ name }}>{% endset %}{{ x }}"), "<[Bob]>");
  EXPECT_EQ(marked("{% macro m(a) %}<{{ a }}>{% endmacro %}{{ m(name) }}"), "<[Bob]>");
  EXPECT_EQ(marked("{% filter upper %}a{{ name }}{% endfilter %}"), "A[BOB]");
  EXPECT_EQ(marked("{% set ns = namespace(t='') %}{% set ns.t = ns.t ~ name ~ 'x' %}{{ ns.t }}"), "[Bob]x");
}

TEST(Origin, PrintedAndSerializedDataIsItsAuthors) {
  EXPECT_EQ(marked("<{{ tools|tojson }}>"), R"(<[[{"name": "f", "n": 1}]]>)");
  EXPECT_EQ(marked("{{ {'k': name}|tojson }}"), R"({"k": "[Bob]"})");
  EXPECT_EQ(marked("{{ tools }}"), "[[{'name': 'f', 'n': 1}]]");
  EXPECT_EQ(marked("{{ ['k', name] }}"), "['k', '[Bob]']");
  EXPECT_EQ(marked("{% for k, v in tools[0].items() %}{{ k }}={{ v }};{% endfor %}"), "[name]=[f];[n]=1;");
}

}  // namespace
}  // namespace quire
