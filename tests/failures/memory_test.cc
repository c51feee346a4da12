// Memory that runs out at each allocation in turn, once or for good: an operation ends in std::bad_alloc, in an error or as
// if nothing had happened; it loses nothing, and works when it is repeated.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include "formats/checkpoint.h"
#include "server/openai_request.h"
#include "support/failing_memory.h"
#include "text/chat_template.h"
#include "vocab/tokenizer_source.h"

namespace quire {
namespace {

using Operation = std::function<Result<std::string>()>;

// Every one of the first allocations, then ever fewer.
int64_t after(int64_t k) { return k + 1 + k / 64; }

// What became of the operation when its `k`-th allocation failed. False: it has fewer.
bool fails_well(const Operation& operation, const std::string& expected, int64_t k, bool lasting) {
  const int64_t before = live_allocations();
  bool failed = false;
  std::string wrong;
  {
    const FailingMemory failing(k, lasting);
    try {
      const Result<std::string> outcome = operation();
      failed = failing.failed();
      if (!failed || outcome.ok()) {
        if (!outcome.ok() || *outcome != expected) wrong = "another outcome";
      } else if (outcome.status().message().empty()) {
        wrong = "an error without words";
      }
    } catch (const std::bad_alloc&) {
      failed = true;
    }
  }
  EXPECT_EQ(wrong, "") << "allocation " << k << (lasting ? " and all after it" : "");
  EXPECT_EQ(live_allocations(), before) << "lost at allocation " << k << (lasting ? " and all after it" : "");
  return failed;
}

// Repeats the operation until it has no further allocation that could fail; returns how many failed.
int64_t strike_each_allocation(const Operation& operation) {
  const Result<std::string> expected = operation();  // also fills what is made once
  EXPECT_TRUE(expected.ok()) << expected.status().message();
  if (!expected.ok()) return 0;
  int64_t struck = 0;
  for (const bool lasting : {false, true}) {
    for (int64_t k = 1; fails_well(operation, *expected, k, lasting) && !testing::Test::HasFailure(); k = after(k))
      ++struck;
  }
  const Result<std::string> again = operation();
  EXPECT_TRUE(again.ok() && *again == *expected) << "works as before";
  return struck;
}

TEST(FailingMemory, ParsingARequest) {
  const std::string body =
      R"({"model":"m","messages":[{"role":"system","content":"a long enough content to need memory of its own"},)"
      R"({"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}],"stop":["one","two"],)"
      R"("logit_bias":{"7":1.5,"12":-100},"bad_words":["word"],"stop_token_ids":[1,2,3],"temperature":0.5,)"
      R"("chat_template_kwargs":{"enable_thinking":false},"nonsense":{"a":[1,2,{"b":null}]},"user":"u"})";
  const Options defaults;
  const Hparams hparams;
  const RequestContext context = {.defaults = defaults, .hparams = hparams, .vocab_size = 1000, .lenient = true};
  const int64_t struck = strike_each_allocation([&]() -> Result<std::string> {
    const ParsedCall parsed = parse_generation_call(Api::kChat, body, context);
    if (const auto* error = std::get_if<ApiError>(&parsed)) return invalid_argument(error->message);
    return std::get<GenerationCall>(parsed).messages;
  });
  EXPECT_GT(struck, 50);
}

TEST(FailingMemory, ARefusedRequest) {
  const Options defaults;
  const Hparams hparams;
  const RequestContext context = {.defaults = defaults, .hparams = hparams, .vocab_size = 1000};
  const int64_t struck = strike_each_allocation([&]() -> Result<std::string> {
    const ParsedCall parsed =
        parse_generation_call(Api::kChat, R"({"messages":[{"role":"user","content":"x"}],"top_p":7})", context);
    const auto* error = std::get_if<ApiError>(&parsed);
    return error != nullptr ? Result<std::string>(error_json(*error)) : invalid_argument("was taken");
  });
  EXPECT_GT(struck, 10);
}

TEST(FailingMemory, OpeningAModelAndEncodingText) {
  const std::string path = std::string(QUIRE_SOURCE_DIR) + "/tests/golden/tiny-gguf/";
  for (const char* name : {"qwen2.gguf", "llama-mha-spm.gguf"}) {
    SCOPED_TRACE(name);
    const int64_t struck = strike_each_allocation([&]() -> Result<std::string> {
      QUIRE_ASSIGN_OR_RETURN(const auto checkpoint, Checkpoint::open(path + name));
      QUIRE_ASSIGN_OR_RETURN(const auto tokenizer, load_tokenizer(*checkpoint));
      QUIRE_ASSIGN_OR_RETURN(const auto ids, tokenizer->encode("a text of some words, 123 and \u4e2d", {}));
      return tokenizer->decode(ids);
    });
    EXPECT_GT(struck, 100);
  }
}

TEST(FailingMemory, RenderingAChat) {
  constexpr std::string_view kSource =
      "{% macro f(a, b=2) %}{{ a ~ b }}{% endmacro %}{% set ns = namespace(x=[]) %}"
      "{% for m in messages %}{{ '<|' + m['role'] + '|>' + m.content | trim | upper }}{{ f(m.role) }}"
      "{% set ns.x = ns.x + [m.content.split(' ')] %}{{ m | tojson(indent=1) }}{% endfor %}"
      "{{ ns.x | join(', ') }}{{ '%s and %05.1f' % ('a', 1.5) }}{{ messages | map(attribute='role') | list }}";
  const ChatInput input = {.messages = R"([{"role":"system","content":"be kind to each other, always"},)"
                                       R"({"role":"user","content":"what is this? \u2603"}])",
                           .tools = {},
                           .kwargs = R"({"add_generation_prompt":true})",
                           .now = 0};
  const int64_t struck = strike_each_allocation([&]() -> Result<std::string> {
    QUIRE_ASSIGN_OR_RETURN(const ChatTemplate chat_template, ChatTemplate::parse(kSource));
    QUIRE_ASSIGN_OR_RETURN(const MarkedText text, chat_template.render(input));
    return text.text;
  });
  EXPECT_GT(struck, 200);
}

}  // namespace
}  // namespace quire
