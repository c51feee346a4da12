// Who wrote which byte: what users say must never count as the template's words.
#include <gtest/gtest.h>

#include "text/chat_template.h"

namespace quire {
namespace {

// The rendered text with the caller's parts in [] and the model's in {}.
std::string marked(std::string_view source) {
  const auto chat_template = ChatTemplate::parse(source);
  if (!chat_template.ok()) return chat_template.status().message();
  const ChatInput input{.messages = R"([{"role": "user", "content": "Hi <x>"}, " pad ", "a,b", "é ß", "%s", "*",
                                        {"role": "assistant", "content": "said", "reasoning_content": "thought",
                                         "name": "Al", "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]},
                                        {"content": [{"type": "text", "text": "part"}], "role": "assistant"},
                                        {"role": "<x>", "content": "odd"}, {"role": "tool", "content": "out"}])",
                        .tools = R"([{"name": "f", "n": 1}])",
                        .kwargs = R"({"eos_token": "</e>", "image_token": "<i>", "additional_special_tokens": ["<t>"],
                                      "name": "Bob", "n": 5, "yes": true, "nothing": null, "half": 0.5})",
                        .now = 0,
                        .variables = R"({"bos_token": "<s>", "eos_token": "</s>", "listed": ["<l>"]})"};
  const auto rendered = chat_template->render(input);
  if (!rendered.ok()) return rendered.status().message();
  std::string text;
  for (const auto& span : rendered->spans) {
    const std::string part = rendered->text.substr(span.begin, span.end - span.begin);
    text += span.author == Author::kTemplate ? part
            : span.author == Author::kModel  ? "{" + part + "}"
                                             : "[" + part + "]";
  }
  return text;
}

TEST(Origin, TemplateTextAndCallersValues) {
  EXPECT_EQ(marked("<|start|>{{ messages[0].role }}\n{{ messages[0]['content'] }}<|end|>"),
            "<|start|>user\n[Hi <x>]<|end|>");
}

// A role that the protocol knows is a word of the protocol: templates build tokens from it. Any other is the caller's.
TEST(Origin, RolesOfTheProtocolAreTheTemplates) {
  EXPECT_EQ(marked("{% for m in messages %}{% if m.role %}<|{{ m.role }}|>{% endif %}{% endfor %}"),
            "<|user|><|assistant|><|assistant|><|[<x>]|><|tool|>");
  EXPECT_EQ(marked("{{ messages[9].content }}"), "[out]");
}

TEST(Origin, EarlierAnswersAreTheModels) {
  EXPECT_EQ(marked("{{ messages[6].content }}|{{ messages[6].reasoning_content }}|{{ messages[7].content[0].text }}"),
            "{said}|{thought}|{part}");
  EXPECT_EQ(marked("{{ messages[6].name }}|{{ messages[6].tool_calls[0].function.name }}|"
                   "{{ messages[6].tool_calls[0].function.arguments }}|{{ messages[7].content[0].type }}"),
            "[Al]|[f]|[{}]|[text]");
  EXPECT_EQ(marked("{{ '<' ~ messages[6].content ~ name }}"), "<{said}[Bob]");
}

TEST(Origin, WhatTheModelGivesIsTheTemplatesAndWhatTheCallerGivesIsNot) {
  EXPECT_EQ(marked("{{ bos_token }}{{ listed[0] }}"), "<s><l>");
  EXPECT_EQ(marked("{{ eos_token }}{{ image_token }}{{ additional_special_tokens[0] }}{{ name }}"), "[</e><i><t>Bob]");
}

// Numbers and the like are words too: "<|" ~ n ~ "|>" must not spell a token with a caller's n.
TEST(Origin, NumbersOfTheCallerAreTheCallers) {
  EXPECT_EQ(marked("<{{ n }}|{{ yes }}|{{ nothing }}|{{ half }}|{{ 5 }}>"), "<[5]|[True]|[None]|[0.5]|5>");
  EXPECT_EQ(marked("{{ '<|' ~ n ~ '|>' }}{{ [n] }}{{ [n]|tojson }}{{ {n: 1}|tojson }}"),
            "<|[5]|>[[5]][[5]]{[\"5\"]: 1}");
  EXPECT_EQ(marked("{{ '%d!' % n }}{{ '%03d' % n }}{{ '%3s|' % n }}{{ '%.1f' % half }}"), "[5]![005  5]|[0.5]");
  EXPECT_EQ(marked("{{ n + 1 }}{{ name|length }}{% if yes is true %}y{% endif %}{% if nothing is none %}n{% endif %}"),
            "63yn");
}

TEST(Origin, PaddingAndSeparatorsAreTheirAuthors) {
  EXPECT_EQ(marked("{{ '%4s|' % name }}{{ '%-4s|' % 'a' }}"), " [Bob]|a   |");
  EXPECT_EQ(marked("{{ [1, 2]|tojson(separators=(name, ':')) }}{{ [1]|tojson(indent=name) }}"),
            "[1[Bob]2][\n[Bob]1\n]");
  EXPECT_EQ(marked("{{ strftime_now('%Y') }}{{ strftime_now('<' ~ name) }}{{ [1, 2]|join(name) }}"),
            "1970[<Bob]1[Bob]2");
  EXPECT_EQ(marked("{{ (name ~ '\n')|indent(1, true) }}"), " [Bob]\n");
}

TEST(Origin, StringOperationsKeepIt) {
  EXPECT_EQ(marked("{{ 'a' + name + 'b' }}{{ 'c' ~ name ~ 1 }}"), "a[Bob]bc[Bob]1");
  EXPECT_EQ(marked("{{ ('<' ~ name ~ '>')[1:3] }}{{ ('<' ~ name)[::-1] }}{{ (name ~ '<')[-1] }}"), "[BoboB]<<");
  EXPECT_EQ(marked("<{{ messages[1] | trim }}|{{ messages[1].strip() }}|{{ (messages[1] ~ '  ').rstrip() }}>"),
            "<[pad]|[pad]|[ pad]>");
  EXPECT_EQ(marked("{{ messages[2].split(',')|join('-') }}"), "[a]-[b]");
  EXPECT_EQ(marked("{{ messages[2]|replace(',', ';') }}{{ 'x.y'|replace('.', name) }}"), "[a];[b]x[Bob]y");
  EXPECT_EQ(marked("{{ ('ü' ~ messages[3])|upper }}"), "Ü[É SS]");
  EXPECT_EQ(marked("{{ name * 2 }}{{ '%s=%s' % ('k', name) }}{{ messages[4] % 'x' }}"), "[BobBob]k=[Bob]x");
  EXPECT_EQ(marked("{{ ('a\n' ~ name)|indent(1) }}"), "a\n [Bob]");
  EXPECT_EQ(marked("{{ messages[0].content|safe }}{{ '<' ~ name|safe }}"), "[Hi <x>]<[Bob]");
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
  EXPECT_EQ(marked("{{ dict(messages[7])|tojson }}"),
            "{\"[content]\": [[{\"type\": \"text\", \"text\": \"]{part}[\"}]], \"[role]\": \"assistant\"}");
  EXPECT_EQ(marked("{{ tools }}"), "[[{'name': 'f', 'n': 1}]]");
  EXPECT_EQ(marked("{{ ['k', name] }}"), "['k', '[Bob]']");
  EXPECT_EQ(marked("{% for k, v in tools[0].items() %}{{ k }}={{ v }};{% endfor %}"), "[name]=[f];[n]=[1];");
}

}  // namespace
}  // namespace quire
