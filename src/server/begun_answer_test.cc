#include "server/begun_answer.h"

#include <gtest/gtest.h>

#include "text/chat_template.h"

namespace quire {
namespace {

struct Case {
  const char* chat_template;
  const char* words;
  const char* expected;  // the text that is left; null: refused
};

// Expected: tokenizer.apply_chat_template(messages, chat_template=..., continue_final_message=True, tokenize=False) of
// transformers 5.24.
TEST(BegunAnswer, EndsWhereTransformersEndsIt) {
  const Case cases[] = {
      {"{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}", "Hello", "<user>Hi</><assistant>Hello"},
      {"{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}", " Hello \n",
       "<user>Hi</><assistant> Hello \n"},
      {"{% for m in messages %}<{{ m.role }}>{{ m.content | trim }}</>{% endfor %}", " Hello \n",
       "<user>Hi</><assistant>Hello"},
      {"{% for m in messages %}<{{ m.role }}>{{ m.content | trim }}</>{% endfor %}", "Hello\xE3\x80\x80",
       "<user>Hi</><assistant>Hello"},
      {"{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}", "", "<user>Hi</><assistant>"},
      {"{% for m in messages %}<{{ m.role }}>{{ m.content.split('|')[-1] }}</>{% endfor %}", "a|b", nullptr},
      {"{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% endif %}{% endfor %}", "Hello", nullptr},
      {"{% for m in messages %}{{ m.content | upper }}{% endfor %}", "Hello", nullptr},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.chat_template);
    const BegunAnswer begun{.tag = new_tag(), .words = c.words};
    std::string escaped;
    for (const char* at = c.words; *at != 0; ++at) escaped += *at == '\n' ? "\\n" : std::string(1, *at);
    const auto chat_template = ChatTemplate::parse(c.chat_template);
    ASSERT_TRUE(chat_template.ok());
    auto chat =
        chat_template->render({.messages = R"([{"role":"user","content":"Hi"},{"role":"assistant","content":")" +
                                           escaped + begun.tag + "\"}]",
                               .tools = {},
                               .kwargs = {}});
    ASSERT_TRUE(chat.ok());
    const Status status = end_behind(begun, &*chat);
    EXPECT_EQ(status.ok(), c.expected != nullptr) << status.message();
    if (!status.ok() || c.expected == nullptr) continue;
    EXPECT_EQ(chat->text, c.expected);
    EXPECT_EQ(chat->spans.back().end, chat->text.size());
  }
}

// The tag is new each time: who writes one into a message finds that it is text.
TEST(BegunAnswer, HasATagThatNobodyCanKnow) {
  EXPECT_NE(new_tag(), new_tag());
  EXPECT_GT(new_tag().size(), 24u);
}

}  // namespace
}  // namespace quire
