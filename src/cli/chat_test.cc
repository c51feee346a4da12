#include "cli/chat.h"

#include <gtest/gtest.h>

#include "json/json_value.h"

namespace quire {
namespace {

// Headers, tokenizer and template of a tiny model; no weights are loaded.
class ConversationTest : public testing::Test {
 protected:
  ConversationTest() {
    ModelOptions options;
    options.model_path = QUIRE_SOURCE_DIR "/tests/golden/tiny/llama-mqa-sharded";
    auto opened = Generator::open(options);
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    generator_ = std::move(opened.value());
  }

  Conversation conversation(bool raw = false) const { return {*generator_, "", raw}; }

  std::unique_ptr<Generator> generator_;
};

TEST_F(ConversationTest, DropsTheOldestTurns) {
  Conversation chat = conversation();
  chat.set_system("Be brief");
  Conversation late = conversation();
  late.set_system("Be brief");
  for (const char* text : {"one", "two", "three"}) chat.remember(text, "answer");
  late.remember("three", "answer");
  EXPECT_EQ(chat.turns(), 3u);
  EXPECT_EQ(chat.prompt_for("four", 2).value(), late.prompt_for("four").value());
  EXPECT_NE(chat.prompt_for("four", 1).value(), late.prompt_for("four").value());
  chat.drop_oldest(2);
  EXPECT_EQ(chat.messages_json(), late.messages_json());
  chat.drop_oldest(5);
  EXPECT_EQ(chat.turns(), 0u);
  EXPECT_EQ(chat.system(), "Be brief");
}

TEST_F(ConversationTest, IsSavedAsTheMessagesOfTheApi) {
  Conversation chat = conversation();
  chat.set_system("Say \"hi\"");
  chat.remember("one\ntwo", "h\xC3\xA4");
  const std::string json = chat.messages_json();
  EXPECT_EQ(json,
            "[{\"role\":\"system\",\"content\":\"Say \\\"hi\\\"\"},\n {\"role\":\"user\",\"content\":\"one\\ntwo\"},\n "
            "{\"role\":\"assistant\",\"content\":\"h\xC3\xA4\"}]\n");
  Conversation again = conversation();
  EXPECT_TRUE(again.load(json, "file").ok());
  EXPECT_EQ(again.messages_json(), json);
  EXPECT_EQ(again.prompt_for("next").value(), chat.prompt_for("next").value());
  EXPECT_TRUE(again.load(R"({"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}]})", "f").ok());
  EXPECT_EQ(again.messages_json(), "[{\"role\":\"user\",\"content\":\"a\"}]\n");
  EXPECT_EQ(again.system(), "");
}

TEST_F(ConversationTest, RefusesWhatTheApiWould) {
  Conversation chat = conversation();
  chat.remember("kept", "yes");
  const std::string before = chat.messages_json();
  for (const char* json :
       {"", "{", "[]", "{}", "5", "[5]", "[{}]", R"([{"role": "king", "content": "a"}])",
        R"([{"role": "user", "content": 5}])", R"([{"role": "user", "content": "a", "surprise": 1}])",
        R"([{"role": "user", "content": [{"type": "image_url", "image_url": "x"}]}])", "[{\"role\": \"user\"}]"}) {
    const Status status = chat.load(json, "chat.json");
    EXPECT_FALSE(status.ok()) << json;
    EXPECT_TRUE(status.message().starts_with("chat.json: ")) << status.message();
  }
  EXPECT_FALSE(chat.load(std::string(100000, '['), "chat.json").ok());
  EXPECT_EQ(chat.messages_json(), before);
}

TEST_F(ConversationTest, WithoutATemplateIsOneText) {
  Conversation chat = conversation(true);
  chat.remember("one", " two");
  EXPECT_EQ(chat.prompt_for("three").value(),
            generator_->tokenizer().encode("one two\nthree", {.add_special = true}).value());
  EXPECT_EQ(chat.prompt_for("three", 1).value(),
            generator_->tokenizer().encode("three", {.add_special = true}).value());
}

TEST(FewestToDrop, IsTheFewest) {
  for (size_t turns = 0; turns < 40; ++turns) {
    for (size_t needed = 0; needed <= turns + 1; ++needed) {
      int asked = 0;
      const auto found = fewest_to_drop(turns, [&](size_t without) -> Result<bool> {
        ++asked;
        return without >= needed;
      });
      ASSERT_TRUE(found.ok());
      EXPECT_EQ(*found, needed <= turns ? std::optional(needed) : std::nullopt);
      EXPECT_LE(asked, 8);
    }
  }
}

}  // namespace
}  // namespace quire
