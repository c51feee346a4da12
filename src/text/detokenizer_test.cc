#include "text/detokenizer.h"

#include <gtest/gtest.h>

#include <random>

#include "text/test_specs.h"

namespace quire {
namespace {

using testing_specs::add_special;
using testing_specs::add_token;
using testing_specs::byte_level_spec;
using testing_specs::score_spec;

const std::string kBad(kReplacementCharacter);

std::unique_ptr<Tokenizer> make(TokenizerSpec spec) {
  auto tokenizer = Tokenizer::create(std::move(spec));
  QUIRE_CHECK(tokenizer.ok());
  return std::move(*tokenizer);
}

TEST(Detokenizer, HoldsBackUnfinishedCodePoints) {
  const auto tokenizer = make(byte_level_spec());
  Detokenizer detokenizer(*tokenizer);
  EXPECT_EQ(detokenizer.push('a'), "a");
  EXPECT_EQ(detokenizer.push(0xF0), "");
  EXPECT_EQ(detokenizer.push(0x9F), "");
  EXPECT_EQ(detokenizer.push(0x98), "");
  EXPECT_EQ(detokenizer.push(0x80), "\U0001F600");
  EXPECT_EQ(detokenizer.finish(), "");
}

// Expected values: decoders.ByteLevel().decode of tokenizers 0.23.3.
TEST(Detokenizer, ByteLevelReplacesIllFormedSequences) {
  const auto tokenizer = make(byte_level_spec());
  Detokenizer detokenizer(*tokenizer);
  EXPECT_EQ(detokenizer.push(0xE4), "");
  EXPECT_EQ(detokenizer.push(0xBD), "");
  EXPECT_EQ(detokenizer.push('x'), kBad + "x");
  EXPECT_EQ(detokenizer.push(0x80), kBad);
  EXPECT_EQ(detokenizer.push(0xF0), "");
  EXPECT_EQ(detokenizer.push(0x9F), "");
  EXPECT_EQ(detokenizer.finish(), kBad);
  EXPECT_EQ(detokenizer.finish(), "");
}

// Expected values: the sequence Replace, ByteFallback, Fuse, Strip of tokenizers 0.23.3.
TEST(Detokenizer, ByteTokensReplaceEachBadByte) {
  TokenizerSpec spec = score_spec({"\u2581", "a"});
  const int32_t first_byte = 2, mark = spec.vocabulary.find("\u2581"), a = spec.vocabulary.find("a");
  const auto tokenizer = make(std::move(spec));
  Detokenizer detokenizer(*tokenizer);
  EXPECT_EQ(detokenizer.push(mark), "");  // the space that the prefix stands for
  EXPECT_EQ(detokenizer.push(mark), " ");
  EXPECT_EQ(detokenizer.push(first_byte + 0xE4), "");
  EXPECT_EQ(detokenizer.push(first_byte + 0xBD), "");
  EXPECT_EQ(detokenizer.push(a), kBad + kBad + "a");
  EXPECT_EQ(detokenizer.push(first_byte + 0xC3), "");
  EXPECT_EQ(detokenizer.push(first_byte + 0xA9), "\u00E9");
  EXPECT_EQ(detokenizer.push(first_byte + 0xF0), "");
  EXPECT_EQ(detokenizer.finish(), kBad);
  EXPECT_EQ(detokenizer.push(mark), "");  // as new
}

TEST(Detokenizer, SpecialTokensShowOnRequest) {
  TokenizerSpec spec =
      score_spec({"\u2581"
                  "a"});
  const int32_t a = spec.vocabulary.find(
      "\u2581"
      "a");
  const auto tokenizer = make(std::move(spec));
  EXPECT_EQ(tokenizer->decode(std::vector<int32_t>{1, a, a}), "a a");
  EXPECT_EQ(tokenizer->decode(std::vector<int32_t>{1, a, a}, true), "<s> a a");
}

TEST(Detokenizer, IdsWithoutTokenAreSilent) {
  TokenizerSpec spec = byte_level_spec();
  const int32_t hole = add_token("", &spec);
  const auto tokenizer = make(std::move(spec));
  EXPECT_EQ(tokenizer->decode(std::vector<int32_t>{'a', hole, -1, 1 << 30, 'b'}), "ab");
}

TEST(Detokenizer, TextOutsideTheByteAlphabetStandsForItself) {
  TokenizerSpec spec = byte_level_spec();
  const int32_t spaced = add_special("<two words>", &spec, false).id;
  const auto tokenizer = make(std::move(spec));
  EXPECT_EQ(tokenizer->decode(std::vector<int32_t>{spaced}), "<two words>");
}

TEST(Detokenizer, NeverEmitsHalfACodePoint) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 rng(seed);
  const auto bytes = make(byte_level_spec());
  const auto pieces = make(score_spec({"\u2581", "a", "\u4E2D"}));
  for (int round = 0; round < 1000; ++round) {
    for (const auto* tokenizer : {bytes.get(), pieces.get()}) {
      std::vector<int32_t> ids;
      for (int i = 0; i < 12; ++i)
        ids.push_back(static_cast<int32_t>(rng() % static_cast<uint32_t>(tokenizer->vocab_size())));
      Detokenizer detokenizer(*tokenizer);
      std::string streamed;
      for (const int32_t id : ids) {
        const std::string text = detokenizer.push(id);
        ASSERT_TRUE(is_valid_utf8(text));
        streamed += text;
      }
      streamed += detokenizer.finish();
      ASSERT_EQ(streamed, tokenizer->decode(ids));
    }
  }
}

}  // namespace
}  // namespace quire
