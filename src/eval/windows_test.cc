#include "eval/windows.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "text/test_specs.h"

namespace quire {
namespace {

std::vector<int32_t> numbered(int32_t count) {
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  std::iota(tokens.begin(), tokens.end(), 100);
  return tokens;
}

std::string message_of(const Result<EvalText>& text) { return text.ok() ? "no error" : text.status().message(); }

TEST(EvalText, CutsWholeWindowsAndPutsBosFirst) {
  const auto text = EvalText::from_tokens("a text", numbered(27), 7, 8, 0);
  ASSERT_TRUE(text.ok()) << message_of(text);
  EXPECT_EQ(text->windows(), 3);
  EXPECT_EQ(text->tokens(), 24);
  EXPECT_EQ(text->text_tokens(), 27);
  const auto second = text->tokens_of(1);
  EXPECT_EQ(std::vector<int32_t>(second.begin(), second.end()),
            (std::vector<int32_t>{7, 109, 110, 111, 112, 113, 114, 115}));
  // As llama.cpp's tool: the logits of rows 4 to 6 are held against tokens 5 to 7.
  EXPECT_EQ(text->first_row(), 4);
  EXPECT_EQ(text->scored_per_window(), 3);
}

TEST(EvalText, WithoutBosTokensStay) {
  const auto text = EvalText::from_tokens("a text", numbered(16), -1, 8, 0);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(text->tokens_of(1)[0], 108);
}

TEST(EvalText, LimitOfTokensIsKeptInWholeWindows) {
  const auto text = EvalText::from_tokens("a text", numbered(100), -1, 8, 31);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(text->windows(), 3);
  EXPECT_EQ(text->text_tokens(), 100);
}

TEST(EvalText, RefusesWhatCannotBeScored) {
  EXPECT_EQ(message_of(EvalText::from_tokens("notes.txt", numbered(5), -1, 8, 0)),
            "notes.txt: 5 of its 5 tokens to read, and a window takes 8: give a longer text or a smaller window");
  EXPECT_EQ(message_of(EvalText::from_tokens("notes.txt", numbered(50), -1, 8, 7)),
            "notes.txt: 7 of its 50 tokens to read, and a window takes 8: give a longer text or a smaller window");
  EXPECT_FALSE(EvalText::from_tokens("notes.txt", numbered(50), -1, 9, 0).ok());
  EXPECT_FALSE(EvalText::from_tokens("notes.txt", numbered(50), -1, 2, 0).ok());
  EXPECT_FALSE(EvalText::from_tokens("notes.txt", {}, -1, 8, 0).ok());
}

TEST(EvalText, TokenizesWithTheModelsBos) {
  const auto tokenizer = Tokenizer::create(testing_specs::score_spec({"a", "b"}));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  const auto text = EvalText::create("a text", "abababababababab", **tokenizer, 4, 0);
  ASSERT_TRUE(text.ok()) << message_of(text);
  for (int64_t w = 0; w < text->windows(); ++w) EXPECT_EQ(text->tokens_of(w)[0], 1) << w;
}

TEST(EvalText, NamesTheByteThatIsNotUtf8) {
  const auto tokenizer = Tokenizer::create(testing_specs::byte_level_spec());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  EXPECT_EQ(message_of(EvalText::create("notes.txt", "gr\xC3\xBC\xC3 und so weiter", **tokenizer, 4, 0)),
            "notes.txt: not UTF-8 at byte 4; convert it, for example with iconv");
  EXPECT_NE(message_of(EvalText::create("notes.txt", "ends in the middle \xE2\x82", **tokenizer, 4, 0))
                .find("not UTF-8 at byte 19"),
            std::string::npos);
}

}  // namespace
}  // namespace quire
