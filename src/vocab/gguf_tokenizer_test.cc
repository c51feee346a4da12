#include "vocab/gguf_tokenizer.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "text/normalizer.h"
#include "text/pre_tokenizer.h"
#include "vocab/test_checkpoint.h"
#include "vocab/tokenizer_source.h"

namespace quire {
namespace {

using testing_checkpoint::MetaCheckpoint;
using Keys = std::map<std::string, MetaValue, std::less<>>;
using Strings = std::vector<std::string>;

Keys byte_level_keys() {
  return {{"tokenizer.ggml.model", std::string("gpt2")},
          {"tokenizer.ggml.pre", std::string("gpt-2")},
          {"tokenizer.ggml.tokens", Strings{"a", "b", "ab", "<|im_end|>", "<tool>", "[PAD5]", "</s>"}},
          {"tokenizer.ggml.token_type", std::vector<int64_t>{1, 1, 1, 3, 4, 5, 4}},
          {"tokenizer.ggml.merges", Strings{"a b"}},
          {"tokenizer.ggml.eos_token_id", uint64_t{2}}};
}

Keys sentencepiece_keys() {
  return {{"tokenizer.ggml.model", std::string("llama")},
          {"tokenizer.ggml.tokens", Strings{"<unk>", "<s>", "</s>", "\u2581", "a",
                                            "\u2581"
                                            "a"}},
          {"tokenizer.ggml.token_type", std::vector<int64_t>{2, 3, 3, 1, 1, 1}},
          {"tokenizer.ggml.scores", std::vector<double>{0, 0, 0, -1, -2, -3}}};
}

Keys with(Keys keys, const std::string& name, MetaValue value) {
  keys["tokenizer.ggml." + name] = std::move(value);
  return keys;
}

Keys without(Keys keys, const std::string& name) {
  keys.erase("tokenizer.ggml." + name);
  return keys;
}

std::unique_ptr<Tokenizer> load(const Keys& keys) {
  auto tokenizer = load_tokenizer(MetaCheckpoint(keys));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  return tokenizer.ok() ? std::move(*tokenizer) : nullptr;
}

std::vector<int32_t> ids(const Tokenizer& tokenizer, std::string_view text, EncodeOptions options = {}) {
  const auto result = tokenizer.encode(text, options);
  return result.ok() ? *result : std::vector<int32_t>{-1};
}

TEST(GgufTokenizer, ReadsByteLevelKeys) {
  const auto t = load(byte_level_keys());
  ASSERT_TRUE(t);
  EXPECT_EQ(ids(*t, "ab<|im_end|>a", {.parse_special = true}), (std::vector<int32_t>{2, 3, 0}));
  EXPECT_EQ(ids(*t, "a<tool>", {.add_special = true}), (std::vector<int32_t>{0, 4}));
  EXPECT_EQ(t->bos_id(), -1);
  EXPECT_EQ(t->token_bytes(5, true), "");  // padding is no token
  // eos, and the control token that ends turns by its text; the tag "</s>" is user-defined and does not.
  EXPECT_EQ(std::vector<int32_t>(t->end_of_generation_ids().begin(), t->end_of_generation_ids().end()),
            (std::vector<int32_t>{2, 3}));
}

TEST(GgufTokenizer, ReadsSentencePieceKeysWithDefaults) {
  const auto t = load(sentencepiece_keys());
  ASSERT_TRUE(t);
  EXPECT_EQ(ids(*t, "a", {.add_special = true}), (std::vector<int32_t>{1, 5}));
  EXPECT_TRUE(t->adds_bos());
  EXPECT_TRUE(t->strips_leading_space());
  EXPECT_EQ(t->decode(std::vector<int32_t>{5, 5}), "a a");
  EXPECT_EQ(ids(*t, "z"), (std::vector<int32_t>{3, 0}));  // no byte tokens here: unknown
}

TEST(GgufTokenizer, KeysOverrideDefaults) {
  const auto t = load(with(with(sentencepiece_keys(), "add_space_prefix", false), "add_bos_token", false));
  ASSERT_TRUE(t);
  EXPECT_EQ(ids(*t, "a", {.add_special = true}), std::vector<int32_t>{4});
  EXPECT_FALSE(t->strips_leading_space());

  const auto eos = load(with(sentencepiece_keys(), "add_eos_token", true));
  ASSERT_TRUE(eos);
  EXPECT_EQ(ids(*eos, "a", {.add_special = true}), (std::vector<int32_t>{1, 5, 2}));

  Keys llama3 = with(with(byte_level_keys(), "pre", std::string("llama-bpe")), "bos_token_id", uint64_t{3});
  const auto bos = load(llama3);
  ASSERT_TRUE(bos);
  EXPECT_EQ(ids(*bos, "a", {.add_special = true}), (std::vector<int32_t>{3, 0}));
}

TEST(GgufTokenizer, UnionsTheEndsOfHparams) {
  MetaCheckpoint checkpoint(byte_level_keys());
  checkpoint.hparams().eos_token_ids = {1};
  const auto spec = tokenizer_spec_of(checkpoint);
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->end_of_generation_ids, (std::vector<int32_t>{2, 3, 1}));
}

TEST(GgufTokenizer, SplitsByDefaultRulesWhereNoneAreNamed) {
  for (const Keys& keys : {without(byte_level_keys(), "pre"), with(byte_level_keys(), "pre", std::string("default"))}) {
    const auto spec = tokenizer_spec_of(MetaCheckpoint(keys));
    ASSERT_TRUE(spec.ok()) << spec.status().message();
    EXPECT_EQ(spec->pre_tokenizer.size(), 4u);
    ASSERT_EQ(spec->remarks.size(), 1u);
    EXPECT_NE(spec->remarks[0].find("tokenizer.ggml.pre"), std::string::npos) << spec->remarks[0];
  }
  MetaCheckpoint qwen(without(byte_level_keys(), "pre"));
  qwen.hparams().architecture = "qwen2";
  EXPECT_EQ(tokenizer_spec_of(qwen)->pre_tokenizer.size(), 1u);
}

TEST(GgufTokenizer, RefusesByKey) {
  const std::pair<Keys, std::string_view> cases[] = {
      {without(byte_level_keys(), "model"), "tokenizer.ggml.model"},
      {with(byte_level_keys(), "model", std::string("rwkv")), "'rwkv'"},
      {with(byte_level_keys(), "model", uint64_t{1}), "tokenizer.ggml.model is not a string"},
      {with(byte_level_keys(), "pre", std::string("nobody-knows")), "'nobody-knows'"},
      {without(byte_level_keys(), "tokens"), "tokenizer.ggml.tokens"},
      {with(byte_level_keys(), "tokens", std::vector<int64_t>{1}), "tokenizer.ggml.tokens is not an array of strings"},
      {with(byte_level_keys(), "tokens", Strings{"a", "b", "ab", "a", "c", "d", "e"}), "same text 'a'"},
      {with(byte_level_keys(), "token_type", std::vector<int64_t>{1}), "token_type has 1 entries for 7 tokens"},
      {with(byte_level_keys(), "token_type", std::vector<int64_t>{1, 1, 1, 3, 4, 5, 77}),
       "token_type of token 6 is 77"},
      {with(byte_level_keys(), "token_type", std::vector<double>(7)), "token_type is not an array of integers"},
      {without(byte_level_keys(), "merges"), "tokenizer.ggml.merges is missing"},
      {with(byte_level_keys(), "merges", Strings{"ab"}), "is not a pair"},
      {with(byte_level_keys(), "merges", Strings{""}), "is not a pair"},
      {with(byte_level_keys(), "merges", Strings{"a z"}), "joins what is no token"},
      {with(byte_level_keys(), "merges", Strings{"b a"}), "'ba', which is no token"},
      {with(byte_level_keys(), "eos_token_id", std::string("x")), "eos_token_id is not an integer"},
      {with(byte_level_keys(), "eos_token_id", uint64_t{1} << 40), "eos_token_id is not a token id"},
      {with(byte_level_keys(), "bos_token_id", uint64_t{70}), "BOS id 70 is outside its vocabulary of 7 tokens"},
      {with(byte_level_keys(), "add_bos_token", uint64_t{1}), "add_bos_token is not a bool"},
      {without(sentencepiece_keys(), "scores"), "tokenizer.ggml.scores is missing"},
      {with(sentencepiece_keys(), "scores", std::vector<double>{1}), "scores has 1 entries for 6 tokens"},
      {with(sentencepiece_keys(), "scores", std::vector<double>(6, 0.0 / 0.0)), "not a number"},
      {with(sentencepiece_keys(), "remove_extra_whitespaces", true), "remove_extra_whitespaces"},
      {with(sentencepiece_keys(), "unknown_token_id", uint64_t{6}), "unknown-token id 6"},
  };
  for (const auto& [keys, message] : cases) {
    const auto tokenizer = load_tokenizer(MetaCheckpoint(keys));
    ASSERT_FALSE(tokenizer.ok()) << message;
    EXPECT_NE(tokenizer.status().message().find(message), std::string::npos) << tokenizer.status().message();
    EXPECT_TRUE(tokenizer.status().message().starts_with("model.gguf: "));
  }
}

TEST(GgufTokenizer, NamesSpecialTokensForTemplates) {
  const auto texts = special_token_texts(MetaCheckpoint(with(sentencepiece_keys(), "padding_token_id", uint64_t{4})));
  ASSERT_TRUE(texts.ok());
  EXPECT_EQ(*texts, (std::vector<std::pair<std::string, std::string>>{
                        {"bos_token", "<s>"}, {"eos_token", "</s>"}, {"unk_token", "<unk>"}, {"pad_token", "a"}}));
  EXPECT_FALSE(special_token_texts(MetaCheckpoint(with(sentencepiece_keys(), "bos_token_id", uint64_t{6}))).ok());
}

TEST(GgufTokenizer, ReadsTheChatTemplate) {
  Keys keys = byte_level_keys();
  EXPECT_EQ(*chat_template_source(MetaCheckpoint(keys)), std::nullopt);
  keys["tokenizer.chat_template"] = std::string("{{ messages }}");
  EXPECT_EQ(*chat_template_source(MetaCheckpoint(keys)), "{{ messages }}");
  keys["tokenizer.chat_template"] = true;
  EXPECT_FALSE(chat_template_source(MetaCheckpoint(keys)).ok());
}

// Pieces by Hugging Face tokenizers: tools/make_pre_tokenizer_goldens.py.
TEST(GgufPreTokenizer, CutsLikeTheModelsOwnTokenizerJson) {
  std::ifstream file(std::string(QUIRE_SOURCE_DIR) + "/tests/golden/pre_tokenizers.json");
  const auto goldens = nlohmann::json::parse(file);
  int names = 0;
  for (const auto& group : goldens) {
    for (const auto& name : group["names"]) {
      ++names;
      const auto pre = gguf_pre_tokenizer(name.get<std::string>());
      ASSERT_TRUE(pre.ok()) << pre.status().message();
      const auto normalizer = Normalizer::create(pre->normalizer);
      const auto pre_tokenizer = PreTokenizer::create(pre->steps);
      ASSERT_TRUE(normalizer.ok() && pre_tokenizer.ok());
      for (const auto& c : group["cases"]) {
        const auto text = c["text"].get<std::string>();
        std::string storage;
        PieceList list;
        ASSERT_TRUE(pre_tokenizer->split(normalizer->apply(text, &storage), true, &list).ok());
        Strings pieces;
        for (const TextRange r : list.pieces) pieces.emplace_back(list.text.substr(r.begin, r.end - r.begin));
        EXPECT_EQ(pieces, c["pieces"].get<Strings>()) << name << ": " << text;
      }
    }
  }
  EXPECT_EQ(names, 18);
}

}  // namespace
}  // namespace quire
