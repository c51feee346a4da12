#include "vocab/hf_tokenizer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "vocab/hf_tokenizer_reader.h"
#include "vocab/test_checkpoint.h"
#include "vocab/tokenizer_source.h"

namespace quire {
namespace {

using testing_checkpoint::MetaCheckpoint;
using Json = nlohmann::json;
using Documents = std::map<std::string, std::string, std::less<>>;

Json minimal() {
  return Json::parse(R"({
    "added_tokens": [{"id": 3, "content": "<s>", "special": true, "normalized": false},
                     {"id": 5, "content": "</s>", "special": true, "normalized": false}],
    "normalizer": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
    "post_processor": null,
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]}})");
}

Json patched(const std::string& pointer, const Json& value) {
  Json document = minimal();
  document[Json::json_pointer(pointer)] = value;
  return document;
}

MetaCheckpoint checkpoint(const Json& tokenizer, const Json& config = Json::object()) {
  return MetaCheckpoint(Documents{{"tokenizer.json", tokenizer.dump()}, {"tokenizer_config.json", config.dump()}});
}

std::vector<int32_t> ids(const Checkpoint& checkpoint, std::string_view text, EncodeOptions options = {}) {
  const auto tokenizer = load_tokenizer(checkpoint);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  if (!tokenizer.ok()) return {-1};
  const auto result = (*tokenizer)->encode(text, options);
  return result.ok() ? *result : std::vector<int32_t>{-1};
}

using Ids = std::vector<int32_t>;

TEST(HfTokenizer, ReadsVocabularyMergesAndAddedTokens) {
  EXPECT_EQ(ids(checkpoint(minimal()), "ab<s>a", {.parse_special = true}), (Ids{2, 3, 0}));
  EXPECT_EQ(ids(checkpoint(patched("/model/merges", {"a b"})), "ab"), Ids{2});  // the older spelling
  const auto spec = tokenizer_spec_of(checkpoint(minimal()));
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->vocabulary.size(), 5);
  EXPECT_EQ(spec->vocabulary.text(4), "</s>");  // ids come from counting, whatever the file says
  ASSERT_EQ(spec->remarks.size(), 1u);
  EXPECT_NE(spec->remarks[0].find("'</s>' is 4, not 5"), std::string::npos) << spec->remarks[0];
}

TEST(HfTokenizer, MembersMayComeInAnyOrder) {
  EXPECT_EQ(ids(MetaCheckpoint(Documents{{"tokenizer.json", R"({"model": {"merges": [["a", "b"]],
      "vocab": {"ab": 2, "b": 1, "a": 0}, "type": "BPE"}, "decoder": {"type": "ByteLevel"},
      "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}})"}}),
                "ab"),
            Ids{2});
}

TEST(HfTokenizer, ConfigSaysWhatSpecialTokensAre) {
  const Json config = {{"bos_token", "<s>"}, {"eos_token", {{"content", "</s>"}}}};
  const auto tokenizer = load_tokenizer(checkpoint(minimal(), config));
  ASSERT_TRUE(tokenizer.ok());
  EXPECT_EQ((*tokenizer)->bos_id(), 3);
  EXPECT_FALSE((*tokenizer)->adds_bos());
  const auto ends = (*tokenizer)->end_of_generation_ids();
  EXPECT_EQ(Ids(ends.begin(), ends.end()), Ids{4});
}

TEST(HfTokenizer, AddsBosAsThePostProcessorSays) {
  const EncodeOptions add{.add_special = true};
  const Json tokens = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  const auto config = [&tokens](const Json& more) {
    Json all = tokens;
    all.update(more);
    return all;
  };
  const Json with_template = patched("/post_processor", Json::parse(R"({"type": "Sequence", "processors": [
      {"type": "ByteLevel"},
      {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}},
       {"SpecialToken": {"id": "</s>"}}],
       "special_tokens": {"<s>": {"ids": [3]}, "</s>": {"ids": [4]}}}]})"));
  EXPECT_EQ(ids(checkpoint(with_template, tokens), "a", add), (Ids{3, 0, 4}));
  EXPECT_EQ(ids(checkpoint(minimal(), tokens), "a", add), Ids{0});
  // Flags that say otherwise are named, and do not count.
  const std::pair<MetaCheckpoint, Ids> contradicted[] = {
      {checkpoint(minimal(), config({{"add_bos_token", true}})), {0}},
      {checkpoint(with_template, config({{"tokenizer_class", "LlamaTokenizer"}, {"add_bos_token", false}})),
       {3, 0, 4}}};
  for (const auto& [hf, expected] : contradicted) {
    EXPECT_EQ(ids(hf, "a", add), expected);
    const auto spec = tokenizer_spec_of(hf);
    ASSERT_TRUE(spec.ok());
    EXPECT_NE(spec->remarks.back().find("add_bos_token is "), std::string::npos) << spec->remarks.back();
  }
}

// What transformers 5.24 makes of the same files.
TEST(HfTokenizer, AddsTokensFromAllFiles) {
  const EncodeOptions parse{.parse_special = true};
  const Json zip = {{"content", "<zip>"}, {"special", true}, {"normalized", false}, {"rstrip", true}};
  const auto with_files = [](const Json& config, const Documents& more) {
    Documents documents{{"tokenizer.json", minimal().dump()}, {"tokenizer_config.json", config.dump()}};
    documents.insert(more.begin(), more.end());
    return MetaCheckpoint(documents);
  };
  const Json decoder = {{"added_tokens_decoder", {{"9", zip}}}};
  EXPECT_EQ(ids(with_files(decoder, {}), "a<zip>  b", parse), (Ids{0, 5, 1}));
  EXPECT_EQ(ids(with_files(Json::object(), {{"added_tokens.json", R"({"<zip>": 6})"}}), "a<zip>b"), (Ids{0, 5, 1}));
  EXPECT_EQ(ids(with_files({{"image_token", "<img>"}, {"extra_special_tokens", {"<x>"}}}, {}), "<x>a<img>", parse),
            (Ids{6, 0, 5}));
  // A list in tokenizer_config.json goes before the older files.
  EXPECT_EQ(ids(with_files(decoder, {{"added_tokens.json", R"({"<old>": 5})"}}), "<old>", parse), Ids{});
}

Documents lists(const std::string& tokenizer_class, bool adds_bos) {
  const Json config = {{"tokenizer_class", tokenizer_class}, {"add_bos_token", adds_bos}};
  return {{"vocab.json", R"({"a": 0, "b": 1, "ab": 2, "<|endoftext|>": 3})"},
          {"merges.txt", "#version: 0.2\na b\n"},
          {"tokenizer_config.json", config.dump()}};
}

TEST(HfTokenizer, ReadsVocabularyAndMergesAsLists) {
  EXPECT_EQ(ids(MetaCheckpoint(lists("GPT2Tokenizer", true)), "abb<|endoftext|>",
                {.add_special = true, .parse_special = true}),
            (Ids{3, 2, 1, 3}));
  EXPECT_EQ(ids(MetaCheckpoint(lists("Qwen2TokenizerFast", false)), "ab"), Ids{2});
  const auto unknown = load_tokenizer(MetaCheckpoint(lists("PreTrainedTokenizerFast", false)));
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.status().message().find("do not say how text is split"), std::string::npos);
  Documents bad = lists("GPT2Tokenizer", false);
  bad["merges.txt"] = "ab\n";
  EXPECT_NE(load_tokenizer(MetaCheckpoint(bad)).status().message().find("'ab' is no pair"), std::string::npos);
  bad.erase("merges.txt");
  EXPECT_NE(load_tokenizer(MetaCheckpoint(bad)).status().message().find("no merges.txt"), std::string::npos);
}

TEST(HfTokenizer, FollowsTheClassWhereItDiffers) {
  const auto spec = tokenizer_spec_of(checkpoint(minimal(), {{"tokenizer_class", "GemmaTokenizer"}}));
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  EXPECT_FALSE(spec->byte_level);
  EXPECT_NE(spec->remarks.back().find("than GemmaTokenizer, which reads it"), std::string::npos)
      << spec->remarks.back();
}

TEST(HfTokenizer, StepsBehindByteLevelSeeStandIns) {
  const Json document = patched("/pre_tokenizer", Json::parse(R"({"type": "Sequence", "pretokenizers": [
      {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false},
      {"type": "Split", "pattern": {"String": "a"}, "behavior": "Isolated", "invert": false}]})"));
  EXPECT_EQ(ids(checkpoint(document), "ab"), (Ids{0, 1}));
}

TEST(HfTokenizer, RefusesByField) {
  const std::pair<Json, std::string_view> cases[] = {
      {patched("/model/type", "Unigram"), "model 'Unigram'"},
      {patched("/model/vocab/c", -1), "gives the token 'c' an id outside"},
      {patched("/model/vocab/c", 1 << 20), "gives the token 'c' an id outside"},
      {patched("/model/vocab/c", "x"), "gives the token 'c' an id outside"},
      {patched("/model/vocab/c", 0), "share the id 0"},
      {patched("/model/vocab/c", Json::array()), "an array within model.vocab"},
      {patched("/model/vocab/c", Json::object()), "an object within model.vocab"},
      {patched("/model/merges", Json::parse(R"([["a"]])")), "no pair of strings"},
      {patched("/model/merges", Json::parse(R"([["a", "b", "a"]])")), "no pair of strings"},
      {patched("/model/merges", Json::parse(R"([["a", ["b"]]])")), "no pair of strings"},
      {patched("/model/merges", Json::parse(R"(["a b c"])")), "no pair of strings"},
      {patched("/model/merges", Json::parse(R"([7])")), "no pair of strings"},
      {patched("/model/merges", Json::parse(R"([["a", "z"]])")), "joins what is no token"},
      {patched("/model/unk_token", "<none>"), "unk_token '<none>'"},
      {patched("/model/dropout", 0.5), "dropout"},
      {patched("/model/continuing_subword_prefix", "##"), "continuing_subword_prefix"},
      {patched("/model/byte_fallback", 1), "'byte_fallback' of the model is not a bool"},
      {patched("/added_tokens/0/id", 1 << 24), "an added token has no id"},
      {patched("/added_tokens/0/content", ""), "added token 3 has an empty text"},
      {patched("/added_tokens/0/special", "yes"), "'special' of the added token 3"},
      {patched("/added_tokens", 7), "'added_tokens' is not an array"},
      {patched("/normalizer", {{"type", "NFKD"}}), "normalizer 'NFKD'"},
      {patched("/normalizer", {{"type", "Replace"}, {"pattern", {{"Regex", "x"}}}, {"content", ""}}), "not a 'String'"},
      {patched("/normalizer", 7), "the normalizer is not an object"},
      {patched("/pre_tokenizer", {{"type", "BertPreTokenizer"}}), "pre-tokenizer 'BertPreTokenizer'"},
      {patched("/pre_tokenizer", {{"type", "Split"}, {"pattern", {{"Regex", "("}}}, {"behavior", "Isolated"}}),
       "does not compile"},
      {patched("/pre_tokenizer", {{"type", "Split"}, {"pattern", {{"Regex", "a"}}}, {"behavior", "Odd"}}),
       "split behavior 'Odd'"},
      {patched("/pre_tokenizer", {{"type", "Split"}}), "has no pattern"},
      {patched("/pre_tokenizer", {{"type", "Sequence"}}), "no array 'pretokenizers'"},
      {patched("/post_processor", {{"type", "BertProcessing"}}), "post-processor 'BertProcessing'"},
      {patched("/post_processor", {{"type", "TemplateProcessing"}}), "lacks 'single'"},
      {patched("/decoder", {{"type", "WordPiece"}}), "decoder 'WordPiece'"},
      {patched("/decoder", nullptr), "decoder ''"},
      {Json::array(), "is not an object"},
  };
  for (const auto& [document, message] : cases) {
    const auto tokenizer = load_tokenizer(checkpoint(document));
    ASSERT_FALSE(tokenizer.ok()) << message;
    EXPECT_NE(tokenizer.status().message().find(message), std::string::npos) << tokenizer.status().message();
    EXPECT_TRUE(tokenizer.status().message().starts_with("model: ")) << tokenizer.status().message();
  }
}

TEST(HfTokenizer, RefusesWhatIsNotJson) {
  const std::string text = minimal().dump();
  for (size_t n = 0; n < text.size(); n += 7) EXPECT_FALSE(read_hf_tokenizer(text.substr(0, n)).ok()) << n;
  EXPECT_FALSE(read_hf_tokenizer(std::string(1'000'000, '[')).ok());
  EXPECT_FALSE(read_hf_tokenizer(text + "x").ok());
  EXPECT_FALSE(read_hf_tokenizer("{\"a\":1,\"a\":2}").ok());
  EXPECT_FALSE(read_hf_tokenizer("{\"a\":\"\xFF\"}").ok());
  EXPECT_EQ(load_tokenizer(MetaCheckpoint(Documents{{"config.json", "{}"}})).status().code(), StatusCode::kNotFound);
  const Documents bad_config = {{"tokenizer.json", text}, {"tokenizer_config.json", "[]"}};
  EXPECT_EQ(load_tokenizer(MetaCheckpoint(bad_config)).status().code(), StatusCode::kCorrupt);
  const Documents twice = {{"tokenizer.json", text},
                           {"tokenizer_config.json", R"({"eos_token": "a", "eos_token": "b"})"}};
  EXPECT_NE(load_tokenizer(MetaCheckpoint(twice)).status().message().find("\"eos_token\" twice"), std::string::npos);
}

TEST(HfTokenizer, FindsTheChatTemplate) {
  const auto source = [](const Documents& documents) { return chat_template_source(MetaCheckpoint(documents)); };
  EXPECT_EQ(*source({{"tokenizer_config.json", "{}"}}), std::nullopt);
  EXPECT_EQ(*source({{"tokenizer_config.json", R"({"chat_template": "x"})"}}), "x");
  EXPECT_EQ(*source({{"tokenizer_config.json", R"({"chat_template": "x"})"}, {"chat_template.jinja", "y"}}), "y");
  EXPECT_EQ(*source({{"tokenizer_config.json", R"({"chat_template": [{"name": "tool_use", "template": "t"},
                                                                   {"name": "default", "template": "d"}]})"}}),
            "d");
  EXPECT_FALSE(source({{"tokenizer_config.json", R"({"chat_template": []})"}}).ok());
  const std::string deep = std::string(1000000, '[') + std::string(1000000, ']');  // once copied level by level
  EXPECT_FALSE(source({{"tokenizer_config.json", R"({"chat_template": [{"name": )" + deep + "}]}"}}).ok());
  EXPECT_FALSE(source({{"tokenizer_config.json", R"({"chat_template": 7})"}}).ok());
}

TEST(HfTokenizer, NamesSpecialTokensForTemplates) {
  const auto texts = special_token_texts(MetaCheckpoint(Documents{
      {"tokenizer_config.json", R"({"bos_token": "<s>", "eos_token": {"content": "</s>"}, "unk_token": null})"},
      {"special_tokens_map.json", R"({"pad_token": "<p>", "bos_token": "<b>"})"}}));
  ASSERT_TRUE(texts.ok());
  EXPECT_EQ(*texts, (std::vector<std::pair<std::string, std::string>>{
                        {"bos_token", "<b>"}, {"eos_token", "</s>"}, {"pad_token", "<p>"}}));
  const auto more = special_token_texts(MetaCheckpoint(
      Documents{{"tokenizer_config.json", R"({"image_token": "<img>", "extra_special_tokens": {"boi_token": "<boi>"},
                                    "added_tokens_decoder": {}, "add_bos_token": true})"},
                {"special_tokens_map.json", R"({"pad_token": "<p>"})"}}));
  ASSERT_TRUE(more.ok());
  EXPECT_EQ(*more,
            (std::vector<std::pair<std::string, std::string>>{{"image_token", "<img>"}, {"boi_token", "<boi>"}}));
}

// As transformers 5.24: tokenizer_config.json decides on names that are not usual, an object in it on its other keys,
// and a name keeps the place where it first came.
TEST(HfTokenizer, NamesOfTwoFilesKeepTheirPlaces) {
  const MetaCheckpoint both(
      Documents{{"tokenizer.json", minimal().dump()},
                {"tokenizer_config.json",
                 R"({"image_token": "<i>", "audio_token": "<a>", "extra_special_tokens": {"image_token": "<i2>"}})"},
                {"special_tokens_map.json", R"({"video_token": "<v>", "image_token": "<x>", "bos_token": "<b>"})"}});
  const auto texts = special_token_texts(both);
  ASSERT_TRUE(texts.ok());
  EXPECT_EQ(*texts,
            (std::vector<std::pair<std::string, std::string>>{
                {"bos_token", "<b>"}, {"video_token", "<v>"}, {"image_token", "<i2>"}, {"audio_token", "<a>"}}));
  EXPECT_EQ(ids(both, "<b><v><i2><a><x>", {.parse_special = true}), (Ids{5, 6, 7, 8}));
}

}  // namespace
}  // namespace quire
