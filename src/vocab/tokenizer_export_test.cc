// Small vocabularies and everything that is refused. Real ones: tests/tokenizer/export_test.cc.
#include "vocab/tokenizer_export.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "vocab/test_checkpoint.h"
#include "vocab/tokenizer_forms.h"
#include "vocab/tokenizer_source.h"

namespace quire {
namespace {

using testing_checkpoint::MetaCheckpoint;
using Json = nlohmann::json;
using Keys = std::map<std::string, MetaValue, std::less<>>;
using Documents = std::map<std::string, std::string, std::less<>>;
using Strings = std::vector<std::string>;

Keys byte_level_keys() {
  return {{"tokenizer.ggml.model", std::string("gpt2")},
          {"tokenizer.ggml.pre", std::string("smollm")},
          {"tokenizer.ggml.tokens", Strings{"a", "b", "ab", "<|im_end|>", "<tool>", "[PAD5]", "\u0120"}},
          {"tokenizer.ggml.token_type", std::vector<int64_t>{1, 1, 1, 3, 4, 5, 1}},
          {"tokenizer.ggml.merges", Strings{"a b"}},
          {"tokenizer.ggml.bos_token_id", uint64_t{3}},
          {"tokenizer.ggml.eos_token_id", uint64_t{2}},
          {"tokenizer.ggml.padding_token_id", uint64_t{4}},
          {"tokenizer.ggml.add_bos_token", true},
          {"tokenizer.ggml.add_eos_token", true},
          {"tokenizer.chat_template", std::string("{{ messages }}")}};
}

Keys sentencepiece_keys() {
  return {{"tokenizer.ggml.model", std::string("llama")},
          {"tokenizer.ggml.tokens", Strings{"<unk>", "<s>", "</s>", "<0x0A>", "\u2581a", "a", "\u2581"}},
          {"tokenizer.ggml.token_type", std::vector<int64_t>{2, 3, 3, 6, 1, 1, 1}},
          {"tokenizer.ggml.scores", std::vector<double>{0, 0, 0, 0, -0.0, -1, -2}}};
}

Keys with(Keys keys, const std::string& name, MetaValue value) {
  keys["tokenizer.ggml." + name] = std::move(value);
  return keys;
}

Json document(const Keys& keys, const char* name) {
  const auto documents = hf_tokenizer_documents(MetaCheckpoint(keys));
  EXPECT_TRUE(documents.ok()) << documents.status().message();
  return documents.ok() ? Json::parse(documents->at(name)) : Json();
}

// What other programs read, not what quire makes of it.
TEST(TokenizerExport, WritesTokenizerJson) {
  const Json t = document(byte_level_keys(), "tokenizer.json");
  EXPECT_EQ(t["model"]["vocab"],
            Json::parse(R"({"a": 0, "b": 1, "ab": 2, "<|im_end|>": 3, "<tool>": 4, "\u0120": 6})"));
  EXPECT_EQ(t["model"]["merges"], Json::parse(R"([["a", "b"]])"));
  EXPECT_EQ(t["pre_tokenizer"]["pretokenizers"][0], Json::parse(R"({"type": "Digits", "individual_digits": true})"));
  EXPECT_EQ(t["pre_tokenizer"]["pretokenizers"][1]["use_regex"], true);
  EXPECT_EQ(t["added_tokens"].size(), 2u);
  EXPECT_EQ(t["added_tokens"][1]["content"], "<tool>");
  EXPECT_EQ(t["added_tokens"][1]["special"], false);
  EXPECT_EQ(
      t["post_processor"]["single"],
      Json::parse(R"([{"SpecialToken": {"id": "<|im_end|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                            {"SpecialToken": {"id": "ab", "type_id": 0}}])"));
  EXPECT_EQ(t["post_processor"]["special_tokens"]["ab"]["ids"], Json::parse("[2]"));
  const Json config = document(byte_level_keys(), "tokenizer_config.json");
  EXPECT_EQ(config["bos_token"], "<|im_end|>");
  EXPECT_EQ(config["pad_token"], "<tool>");
  EXPECT_EQ(config["add_eos_token"], true);
  EXPECT_EQ(config["chat_template"], "{{ messages }}");
  // The control token <|im_end|> ends a generation by its text.
  EXPECT_EQ(document(byte_level_keys(), "generation_config.json"),
            Json::parse(R"({"bos_token_id": 3, "eos_token_id": [2, 3], "pad_token_id": 4})"));
}

TEST(TokenizerExport, WritesPiecesAsMergesWithByteFallback) {
  const Json t = document(sentencepiece_keys(), "tokenizer.json");
  EXPECT_EQ(t["model"]["merges"], Json::parse(R"([["\u2581", "a"]])"));
  EXPECT_EQ(t["model"]["byte_fallback"], true);
  EXPECT_EQ(t["model"]["unk_token"], "<unk>");
  EXPECT_EQ(t["normalizer"]["normalizers"][0], Json::parse(R"({"type": "Prepend", "prepend": "\u2581"})"));
  EXPECT_EQ(t["decoder"]["decoders"].size(), 4u);
  const Json bare = document(with(sentencepiece_keys(), "add_space_prefix", false), "tokenizer.json");
  EXPECT_EQ(bare["normalizer"]["type"], "Replace");
  EXPECT_EQ(bare["decoder"]["decoders"].size(), 3u);
}

TEST(TokenizerExport, KeepsEveryChatTemplate) {
  Keys keys = byte_level_keys();
  keys["tokenizer.chat_templates"] = Strings{"tool_use"};
  keys["tokenizer.chat_template.tool_use"] = std::string("{{ tools }}");
  const Json config = document(keys, "tokenizer_config.json");
  EXPECT_EQ(config["chat_template"], Json::parse(R"([{"name": "default", "template": "{{ messages }}"},
                                                     {"name": "tool_use", "template": "{{ tools }}"}])"));
  const auto documents = hf_tokenizer_documents(MetaCheckpoint(keys));
  const auto back = gguf_tokenizer_metadata(MetaCheckpoint(Documents(documents->begin(), documents->end())));
  ASSERT_TRUE(back.ok()) << back.status().message();
  for (const auto& [key, value] : keys) {
    if (!key.starts_with("tokenizer.chat")) continue;
    EXPECT_TRUE(back->at(key) == value) << key;
  }
}

TEST(TokenizerExport, RefusesGgufByKey) {
  Keys words = with(byte_level_keys(), "pre", std::string("llama-bpe"));
  const std::pair<Keys, std::string_view> cases[] = {
      {Keys{{"general.name", std::string("x")}}, "carries no tokenizer"},
      {with(byte_level_keys(), "merges", Strings{"a x"}), "tokenizer.ggml.merges joins what is no token"},
      {with(byte_level_keys(), "merges", Strings{"b a"}), "'ba', which is no token"},
      {with(byte_level_keys(), "token_type", std::vector<int64_t>{1, 1}), "token_type has 2 entries for 7 tokens"},
      {with(byte_level_keys(), "bos_token_id", uint64_t{7}), "id 7 is outside"},
      {with(byte_level_keys(), "padding_token_id", uint64_t{7}), "tokenizer.ggml.padding_token_id is outside"},
      {with(byte_level_keys(), "padding_token_id", uint64_t{5}), "tokenizer.ggml.padding_token_id names token 5"},
      {with(byte_level_keys(), "eot_token_id", uint64_t{7}), "token 7, which ends a generation, is outside"},
      {with(byte_level_keys(), "tokens", Strings{"a", "b", "ab", "<|im_end|>", "<tool>", "[PAD5]", "\xFF"}),
       "token 6 is not UTF-8"},
      {with(words, "tokens", Strings{"a", "b", "ab", "ab", "<tool>", "[PAD5]", "c"}),
       "token 3 ('ab') has the text of token 2"},
      {with(words, "tokens", Strings{"a", "b", "ab", "end", "<tool>", "[PAD5]", "c"}),
       "control token 3 ('end') is spelled like a word"},
      {with(sentencepiece_keys(), "scores", std::vector<double>{0}),
       "tokenizer.ggml.scores has 1 entries for 7 tokens"},
      {with(sentencepiece_keys(), "unknown_token_id", uint64_t{9}), "unknown-token id 9"},
      {with(sentencepiece_keys(), "unknown_token_id", uint64_t{0xFFFFFFFF}),
       "tokenizer.ggml.tokens lacks some of the byte tokens"},
      {with(sentencepiece_keys(), "tokens", Strings{"<unk>", "<s>", "!", "<0x0A>", "\u2581a", "a", "\u2581"}),
       "control token 2 ('!') is one character"},
      {with(sentencepiece_keys(), "scores", std::vector<double>{0, 0, 0, 0, -1, -1, 0.0 / 0.0}), "not a number"},
      {{{"tokenizer.ggml.model", std::string("llama")},
        {"tokenizer.ggml.tokens", Strings{"<unk>", "<s>", "</s>", "a", "b", "ab", "ba"}},
        {"tokenizer.ggml.scores", std::vector<double>(7, 0)}},
       "tokenizer.ggml.scores gives the tokens 'ab' and 'ba' one score"},
  };
  for (const auto& [keys, message] : cases) {
    const auto documents = hf_tokenizer_documents(MetaCheckpoint(keys));
    ASSERT_FALSE(documents.ok()) << message;
    EXPECT_NE(documents.status().message().find(message), std::string::npos) << documents.status().message();
    EXPECT_TRUE(documents.status().message().starts_with("model.gguf: "));
  }
  Keys templates = byte_level_keys();
  templates["tokenizer.chat_templates"] = Strings{"rag"};
  EXPECT_NE(hf_tokenizer_documents(MetaCheckpoint(templates))
                .status()
                .message()
                .find("tokenizer.chat_template.rag is missing"),
            std::string::npos);
  EXPECT_FALSE(hf_tokenizer_documents(MetaCheckpoint(Documents{{"tokenizer.json", "{}"}})).ok());
  EXPECT_FALSE(gguf_tokenizer_metadata(MetaCheckpoint(byte_level_keys())).ok());
}

struct Parts {
  Json tokenizer;
  Json config;
};

Parts parts_of(const Keys& keys) { return {document(keys, "tokenizer.json"), document(keys, "tokenizer_config.json")}; }

MetaCheckpoint directory(const Parts& parts) {
  return MetaCheckpoint(
      Documents{{"tokenizer.json", parts.tokenizer.dump()}, {"tokenizer_config.json", parts.config.dump()}});
}

TEST(TokenizerExport, PadsTokensToTheEmbedding) {
  MetaCheckpoint hf = directory(parts_of(byte_level_keys()));
  hf.hparams().vocab_size = 9;
  const auto keys = gguf_tokenizer_metadata(hf);
  ASSERT_TRUE(keys.ok()) << keys.status().message();
  EXPECT_EQ(std::get<Strings>(keys->at("tokenizer.ggml.tokens")),
            (Strings{"a", "b", "ab", "<|im_end|>", "<tool>", "[PAD5]", "\u0120", "[PAD7]", "[PAD8]"}));
  EXPECT_EQ(std::get<std::vector<int64_t>>(keys->at("tokenizer.ggml.token_type")),
            (std::vector<int64_t>{1, 1, 3, 3, 3, 5, 1, 5, 5}));  // special tokens by name are control tokens
  hf.hparams().vocab_size = 6;
  const Status status = gguf_tokenizer_metadata(hf).status();
  EXPECT_NE(status.message().find("names the id 6, but config.json's vocab_size is 6"), std::string::npos)
      << status.message();
}

TEST(TokenizerExport, NamesEndsBeyondEos) {
  MetaCheckpoint hf = directory(parts_of(byte_level_keys()));
  hf.hparams().eos_token_ids = {2, 3, 0, 1};  // 3 is <|im_end|>, which readers know
  const auto keys = gguf_tokenizer_metadata(hf);
  ASSERT_TRUE(keys.ok()) << keys.status().message();
  EXPECT_EQ(std::get<uint64_t>(keys->at("tokenizer.ggml.eos_token_id")), 2u);
  EXPECT_EQ(std::get<uint64_t>(keys->at("tokenizer.ggml.eot_token_id")), 0u);
  EXPECT_EQ(std::get<uint64_t>(keys->at("tokenizer.ggml.eom_token_id")), 1u);
  hf.hparams().eos_token_ids = {2, 0, 1, 6};
  EXPECT_NE(gguf_tokenizer_metadata(hf).status().message().find(
                "token 6 of generation_config.json's eos_token_id is one too many"),
            std::string::npos);
}

// A tokenizer.json without BOS, EOS or unknown token has keys that say so, as GGUF has defaults for them.
TEST(TokenizerExport, SaysWhichPiecesAreNotThere) {
  Parts parts = parts_of(with(sentencepiece_keys(), "add_bos_token", false));
  parts.tokenizer["model"].erase("unk_token");
  for (int byte = 0; byte < 256; ++byte) {
    const char digits[] = "0123456789ABCDEF";
    const std::string name = std::string("<0x") + digits[byte / 16] + digits[byte % 16] + ">";
    Json& vocabulary = parts.tokenizer["model"]["vocab"];
    if (!vocabulary.contains(name)) vocabulary[name] = vocabulary.size();
  }
  const auto keys = gguf_tokenizer_metadata(directory({parts.tokenizer, Json::object()}));
  ASSERT_TRUE(keys.ok()) << keys.status().message();
  for (const char* name : {"bos_token_id", "eos_token_id", "unknown_token_id"}) {
    EXPECT_EQ(std::get<uint64_t>(keys->at(std::string("tokenizer.ggml.") + name)), 0xFFFFFFFFu) << name;
  }
  EXPECT_FALSE(std::get<bool>(keys->at("tokenizer.ggml.add_bos_token")));
}

TEST(TokenizerExport, RefusesDocumentsByField) {
  const Parts bytes = parts_of(byte_level_keys()), pieces = parts_of(sentencepiece_keys());
  const auto patched = [](Parts parts, const std::string& pointer, const Json& value) {
    parts.tokenizer[Json::json_pointer(pointer)] = value;
    return parts;
  };
  const auto configured = [](Parts parts, const char* name, const Json& value) {
    parts.config[name] = value;
    return parts;
  };
  const Json metaspace =
      Json::parse(R"({"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": false})");
  Parts llama2 = patched(pieces, "/pre_tokenizer", metaspace);
  llama2.tokenizer["normalizer"] = nullptr;
  const std::pair<Parts, std::string_view> cases[] = {
      {patched(bytes, "/added_tokens/0/lstrip", true),
       "'lstrip' of the added token 3 ('<|im_end|>') has no form in GGUF"},
      {patched(bytes, "/added_tokens/1/single_word", true), "'single_word' of the added token 4"},
      {patched(bytes, "/added_tokens/1/normalized", true), "'normalized' of the added token 4"},
      {patched(bytes, "/pre_tokenizer/pretokenizers/0/individual_digits", false),
       "no name of tokenizer.ggml.pre stands for"},
      {patched(bytes, "/model/ignore_merges", true), "the control token 2 ('ab') is spelled like a word"},
      {patched(bytes, "/normalizer", Json::parse(R"({"type": "NFC"})")), "(1 normalizer steps"},
      {patched(bytes, "/decoder", pieces.tokenizer["decoder"]), "without a ByteLevel decoder"},
      {patched(bytes, "/model/unk_token", "a"), "model.vocab has no token for the byte 0"},
      {patched(bytes, "/model/merges", Json::parse(R"([["a", "x"]])")), "merge 0 joins what is no token"},
      {patched(bytes, "/post_processor/special_tokens/ab/ids", Json::parse("[99]")),
       "'ab' has an id outside the vocabulary"},
      {patched(bytes, "/post_processor/special_tokens/ab/ids", Json::parse("[1]")),
       "the post_processor adds token 1; GGUF can add only the eos_token_id, 2"},
      {patched(bytes, "/post_processor/special_tokens/ab/ids", Json::parse("[2, 2]")), "adds token 2 and others"},
      {configured(bytes, "pad_token", "<none>"), "added token 6 is '<none>' but the vocabulary has"},
      {configured(bytes, "chat_template", Json::parse(R"([{"name": "default", "template": "x"}, {"name": "rag"}])")),
       "an entry of 'chat_template'"},
      {patched(pieces, "/model/unk_token", nullptr),
       "there is no unknown token, so characters without a token are dropped"},
      {patched(pieces, "/model/byte_fallback", false), "byte_fallback, fuse_unk"},
      {patched(pieces, "/model/fuse_unk", false), "byte_fallback, fuse_unk"},
      {patched(pieces, "/model/merges", Json::array()), "model.merges does not join '\u2581' and 'a'"},
      {patched(pieces, "/normalizer", nullptr), "its normalizer is not one"},
      {llama2, "its normalizer is not one"},
      {patched(pieces, "/normalizer", pieces.tokenizer["normalizer"]["normalizers"][1]),
       "strips a leading space if and only if"},
      {patched(pieces, "/pre_tokenizer", Json::parse(R"({"type": "Digits", "individual_digits": true})")),
       "no pre_tokenizer in GGUF"},
      {patched(pieces, "/added_tokens/1/normalized", true), "'normalized' of the added token 1"},
  };
  for (const auto& [parts, message] : cases) {
    const auto keys = gguf_tokenizer_metadata(directory(parts));
    ASSERT_FALSE(keys.ok()) << message;
    EXPECT_NE(keys.status().message().find(message), std::string::npos) << keys.status().message();
    EXPECT_TRUE(keys.status().message().starts_with("model: "));
  }
}

TEST(TokenizerExport, AcceptsASplitAtSpacesThatAreNoMore) {
  Parts gemma = parts_of(with(sentencepiece_keys(), "add_space_prefix", false));
  gemma.tokenizer["pre_tokenizer"] = Json::parse(
      R"({"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": false})");
  const auto keys = gguf_tokenizer_metadata(directory(gemma));
  ASSERT_TRUE(keys.ok()) << keys.status().message();
  EXPECT_FALSE(std::get<bool>(keys->at("tokenizer.ggml.add_space_prefix")));
  EXPECT_EQ(std::get<std::vector<double>>(keys->at("tokenizer.ggml.scores")),
            (std::vector<double>{0, 0, 0, 0, 0, -1, -2}));
}

TEST(TokenizerForms, SpellOutCharactersBeyondAscii) {
  EXPECT_EQ(spelled_out(R"([\x{4e00}-\x{9fa5}]+)"), "[\u4e00-\u9fa5]+");
  // Syntax stays what it is.
  for (const char* same :
       {R"(\x{2d})", R"(\\x{4e00})", R"(\x{4e00)", R"(\x{zz})", R"(\x{110000})", R"(\x{d800})", R"(\)", ""}) {
    EXPECT_EQ(spelled_out(same), same);
  }
}

}  // namespace
}  // namespace quire
