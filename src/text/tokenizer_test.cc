#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <chrono>

#include "text/splitter.h"
#include "text/test_specs.h"

namespace quire {
namespace {

using testing_specs::add_merges;
using testing_specs::add_special;
using testing_specs::byte_level_spec;
using testing_specs::score_spec;

std::unique_ptr<Tokenizer> make(TokenizerSpec spec) {
  auto tokenizer = Tokenizer::create(std::move(spec));
  QUIRE_CHECK(tokenizer.ok());
  return std::move(*tokenizer);
}

std::vector<int32_t> ids(const Tokenizer& tokenizer, std::string_view text, EncodeOptions options = {}) {
  auto result = tokenizer.encode(text, options);
  QUIRE_CHECK(result.ok());
  return *result;
}

constexpr Author kOurs = Author::kTemplate, kModels = Author::kModel, kTheirs = Author::kCaller;

// A text from parts, each with its author.
MarkedText chat(std::initializer_list<std::pair<Author, std::string_view>> parts) {
  MarkedText text;
  for (const auto& [author, part] : parts) {
    const size_t begin = text.text.size();
    text.text += part;
    text.spans.push_back({begin, text.text.size(), author});
  }
  return text;
}

struct ChatTokenizer {
  int32_t start = 0, end = 0, bos = 0, tool = 0;
  std::unique_ptr<Tokenizer> tokenizer;

  explicit ChatTokenizer(bool adds_bos = false) {
    TokenizerSpec spec = byte_level_spec();
    start = add_special("<|start|>", &spec).id;
    end = add_special("<|end|>", &spec).id;
    bos = add_special("<bos>", &spec).id;
    tool = add_special("<tool>", &spec, false).id;
    spec.bos_id = bos;
    if (adds_bos) spec.prefix_ids = {bos};
    tokenizer = make(std::move(spec));
  }

  std::vector<int32_t> encode(const MarkedText& text) const {
    auto result = tokenizer->encode_chat(text);
    QUIRE_CHECK(result.ok());
    return *result;
  }
};

std::vector<int32_t> bytes(std::string_view text) { return {text.begin(), text.end()}; }

std::vector<int32_t> joined(std::initializer_list<std::vector<int32_t>> parts) {
  std::vector<int32_t> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

TEST(Tokenizer, SpecialTokensNeedParseSpecial) {
  const ChatTokenizer c;
  EXPECT_EQ(ids(*c.tokenizer, "<|end|>x"), bytes("<|end|>x"));
  EXPECT_EQ(ids(*c.tokenizer, "<|end|>x", {.parse_special = true}), joined({{c.end}, {'x'}}));
  EXPECT_EQ(ids(*c.tokenizer, "<tool>"), std::vector<int32_t>{c.tool});  // not special: always found
}

TEST(Tokenizer, AddSpecialPutsPrefixAndSuffix) {
  TokenizerSpec spec = byte_level_spec();
  spec.bos_id = add_special("<s>", &spec).id;
  spec.prefix_ids = {spec.bos_id};
  spec.suffix_ids = {add_special("</s>", &spec).id};
  const int32_t bos = spec.bos_id, eos = spec.suffix_ids[0];
  const auto tokenizer = make(std::move(spec));
  EXPECT_TRUE(tokenizer->adds_bos());
  EXPECT_EQ(ids(*tokenizer, "a", {.add_special = true}), (std::vector<int32_t>{bos, 'a', eos}));
  EXPECT_EQ(ids(*tokenizer, "", {.add_special = true}), (std::vector<int32_t>{bos, eos}));
  EXPECT_EQ(ids(*tokenizer, ""), std::vector<int32_t>{});
}

TEST(Tokenizer, ChatTakesSpecialTokensFromTheTemplateOnly) {
  const ChatTokenizer c;
  EXPECT_EQ(c.encode(chat({{kOurs, "<|start|>"}, {kTheirs, "hi<|end|>"}, {kOurs, "<|end|>"}})),
            joined({{c.start}, bytes("hi<|end|>"), {c.end}}));
  // Not when it is split between the two, whoever begins.
  EXPECT_EQ(c.encode(chat({{kOurs, "<|st"}, {kTheirs, "art|>"}})), bytes("<|start|>"));
  EXPECT_EQ(c.encode(chat({{kTheirs, "<|en"}, {kOurs, "d|>"}})), bytes("<|end|>"));
  EXPECT_EQ(c.encode(chat({{kOurs, "<|"}, {kTheirs, "end"}, {kOurs, "|>"}})), bytes("<|end|>"));
  EXPECT_EQ(c.encode(chat({{kTheirs, "<|end|"}, {kOurs, "><|end|>"}})), joined({bytes("<|end|>"), {c.end}}));
  // Two template spans side by side are one text; an empty caller's span between them changes nothing.
  EXPECT_EQ(c.encode(chat({{kOurs, "<|st"}, {kOurs, "art|>"}})), std::vector<int32_t>{c.start});
  EXPECT_EQ(c.encode(chat({{kOurs, "<|st"}, {kTheirs, ""}, {kOurs, "art|>"}})), std::vector<int32_t>{c.start});
}

TEST(Tokenizer, ChatTakesTokensThatAreNotSpecialFromTemplateAndModelOnly) {
  const ChatTokenizer c;
  EXPECT_EQ(c.encode(chat({{kTheirs, "<tool>"}})), bytes("<tool>"));
  EXPECT_EQ(c.encode(chat({{kOurs, "<tool>"}})), std::vector<int32_t>{c.tool});
  EXPECT_EQ(c.encode(chat({{kModels, "<tool>"}})), std::vector<int32_t>{c.tool});
  EXPECT_EQ(c.encode(chat({{kModels, "x<|end|>"}})), bytes("x<|end|>"));
  // Nobody shares one with another.
  EXPECT_EQ(c.encode(chat({{kOurs, "<to"}, {kModels, "ol>"}})), bytes("<tool>"));
  EXPECT_EQ(c.encode(chat({{kModels, "<to"}, {kTheirs, "ol>"}})), bytes("<tool>"));
  EXPECT_EQ(c.encode(chat({{kTheirs, "<to"}, {kOurs, "ol>"}})), bytes("<tool>"));
  EXPECT_EQ(c.encode(chat({{kModels, "<to"}, {kModels, "ol>"}})), std::vector<int32_t>{c.tool});
  // A spelling that does not count hides none that does.
  EXPECT_EQ(c.encode(chat({{kTheirs, "<"}, {kOurs, "<tool>"}})), joined({bytes("<"), {c.tool}}));
}

TEST(Tokenizer, ChatTakesRunsOfSpacesFromAnyone) {
  TokenizerSpec spec = byte_level_spec();
  const int32_t two = add_special("  ", &spec, false).id;
  const int32_t lines = add_special("\n\n", &spec, false).id;
  const int32_t mark = add_special(" \t", &spec).id;
  const auto tokenizer = make(std::move(spec));
  const auto encoded = tokenizer->encode_chat(chat({{kOurs, "\n"}, {kTheirs, "\n  x \t"}, {kOurs, " \t"}}));
  ASSERT_TRUE(encoded.ok());
  EXPECT_EQ(*encoded, joined({{lines, two}, bytes("x \t"), {mark}}));
}

// Tokens that are looked for in normalized text: the marks must survive normalization, which moves every byte.
TEST(Tokenizer, ChatKnowsTheAuthorsOfNormalizedText) {
  TokenizerSpec spec = byte_level_spec();
  const int32_t tool = add_special("<tool>", &spec, false).id;
  spec.added_tokens.back().normalized = true;
  spec.normalizer = {{NormalizerStep::Kind::kPrepend, "", "__"}, {NormalizerStep::Kind::kReplace, "a", "bcd"}};
  const auto tokenizer = make(std::move(spec));
  const auto encode = [&](const MarkedText& text) { return *tokenizer->encode_chat(text); };
  // The token's own normalized form begins with what is put before a text.
  EXPECT_EQ(encode(chat({{kOurs, "<tool>"}})), std::vector<int32_t>{tool});
  EXPECT_EQ(encode(chat({{kTheirs, "<tool>"}})), bytes("__<tool>"));
  EXPECT_EQ(encode(chat({{kTheirs, "aa"}, {kOurs, "__<tool>"}, {kTheirs, "a__<tool>"}})),
            joined({bytes("__bcdbcd"), {tool}, bytes("bcd__<tool>")}));
}

TEST(Tokenizer, ChatHidesNoShorterTemplateTokenBehindALongerSpelling) {
  TokenizerSpec spec = byte_level_spec();
  add_special("ab", &spec);
  const int32_t a = add_special("a", &spec).id;
  const auto tokenizer = make(std::move(spec));
  const auto encoded = tokenizer->encode_chat(chat({{kOurs, "a"}, {kTheirs, "b"}}));
  ASSERT_TRUE(encoded.ok());
  EXPECT_EQ(*encoded, (std::vector<int32_t>{a, 'b'}));
}

TEST(Tokenizer, ChatHidesNoTemplateTokenBehindAUsersHalf) {
  TokenizerSpec spec = byte_level_spec();
  add_special("ab", &spec);
  const int32_t b = add_special("b", &spec).id;
  const auto tokenizer = make(std::move(spec));
  const auto encoded = tokenizer->encode_chat(chat({{kTheirs, "a"}, {kOurs, "b"}}));
  ASSERT_TRUE(encoded.ok());
  EXPECT_EQ(*encoded, (std::vector<int32_t>{'a', b}));
}

TEST(Tokenizer, ChatBeginsWithExactlyOneBos) {
  const ChatTokenizer with(true), without(false);
  EXPECT_EQ(with.encode(chat({{kOurs, "x"}})), (std::vector<int32_t>{with.bos, 'x'}));
  EXPECT_EQ(with.encode(chat({{kOurs, "<bos>x"}})), (std::vector<int32_t>{with.bos, 'x'}));
  EXPECT_EQ(with.encode(chat({{kTheirs, "<bos>"}})), joined({{with.bos}, bytes("<bos>")}));
  EXPECT_EQ(with.encode(chat({})), std::vector<int32_t>{with.bos});
  EXPECT_EQ(without.encode(chat({{kOurs, "x"}})), std::vector<int32_t>{'x'});
}

TEST(Tokenizer, ChatRepairsSpanBySpan) {
  const ChatTokenizer c;
  EXPECT_EQ(c.encode(chat({{kTheirs, "\xE4"}, {kOurs, "<|end|>"}})), joined({{0xEF, 0xBF, 0xBD}, {c.end}}));
}

TEST(Tokenizer, InvalidUtf8IsTheReplacementCharacter) {
  const auto tokenizer = make(byte_level_spec());
  EXPECT_EQ(ids(*tokenizer, "a\xFF"), (std::vector<int32_t>{'a', 0xEF, 0xBF, 0xBD}));
}

TEST(Tokenizer, PrefixSpaceFollowsEverySpecialToken) {
  TokenizerSpec spec = score_spec({"\u2581", "a",
                                   "\u2581"
                                   "a"});
  const int32_t a = spec.vocabulary.find(
      "\u2581"
      "a");
  const auto tokenizer = make(std::move(spec));
  EXPECT_EQ(ids(*tokenizer, "a<s>a", {.parse_special = true}), (std::vector<int32_t>{a, 1, a}));
}

TEST(Tokenizer, NormalizedAddedTokensMatchAndRenderNormalized) {
  TokenizerSpec spec = score_spec({"\u2581", "a"});
  AddedToken token = add_special("<t>", &spec, false);
  spec.added_tokens.back().normalized = true;
  const auto tokenizer = make(std::move(spec));
  // The normalizer puts a mark before the token's text as before any text.
  EXPECT_EQ(ids(*tokenizer, "<t>"), std::vector<int32_t>{token.id});
  EXPECT_EQ(tokenizer->token_bytes(token.id, true), " <t>");
}

TEST(Tokenizer, EndOfGenerationIsASortedSet) {
  TokenizerSpec spec = byte_level_spec();
  spec.end_of_generation_ids = {7, 3, 7, 9999};
  const auto tokenizer = make(std::move(spec));
  const auto ends = tokenizer->end_of_generation_ids();
  EXPECT_EQ(std::vector<int32_t>(ends.begin(), ends.end()), (std::vector<int32_t>{3, 7, 9999}));
}

TEST(Tokenizer, RefusesIdsOutsideTheVocabulary) {
  const auto refuse = [](auto change) {
    TokenizerSpec spec = byte_level_spec();
    change(&spec);
    return Tokenizer::create(std::move(spec)).status().code();
  };
  EXPECT_EQ(refuse([](TokenizerSpec* s) { s->bos_id = 999; }), StatusCode::kCorrupt);
  EXPECT_EQ(refuse([](TokenizerSpec* s) { s->unknown_id = -2; }), StatusCode::kCorrupt);
  EXPECT_EQ(refuse([](TokenizerSpec* s) { s->prefix_ids = {256}; }), StatusCode::kCorrupt);
  EXPECT_EQ(refuse([](TokenizerSpec* s) { s->suffix_ids = {-1}; }), StatusCode::kCorrupt);
  EXPECT_EQ(refuse([](TokenizerSpec* s) { s->added_tokens.push_back({.id = 256, .text = "x"}); }),
            StatusCode::kCorrupt);
  EXPECT_EQ(Tokenizer::create(TokenizerSpec()).status().code(), StatusCode::kCorrupt);
}

TEST(Tokenizer, PatternLimitIsAnErrorOfTheText) {
  TokenizerSpec spec = byte_level_spec();
  PreTokenizerStep step;
  step.pattern = R"((a+)+\d)";
  spec.pre_tokenizer = {step};
  const auto tokenizer = make(std::move(spec));
  EXPECT_EQ(tokenizer->encode(std::string(64, 'a'), {}).status().code(), StatusCode::kInvalidArgument);
}

// Quadratic merging or splitting of these would take hours.
TEST(Tokenizer, LinearOnAMegabyteOfTheSame) {
  for (const bool byte_level : {true, false}) {
    TokenizerSpec spec =
        byte_level ? byte_level_spec() : score_spec({"\u2581", "a", "=", "aa", "==", "aaaa", "\u2581\u2581"});
    if (byte_level) {
      add_merges({{"a", "a"}, {"aa", "aa"}, {"=", "="}, {"\u0120", "\u0120"}}, &spec);
      PreTokenizerStep step;
      step.pattern = kLlama3Pattern;
      spec.pre_tokenizer = {step};
    }
    const auto tokenizer = make(std::move(spec));
    for (const char c : {'a', ' ', '=', '7', '\n', '\''}) {
      const std::string text(1 << 20, c);
      const auto began = std::chrono::steady_clock::now();
      const auto encoded = ids(*tokenizer, text);
      EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(30)) << c;
      EXPECT_EQ(tokenizer->decode(encoded), text);
    }
  }
}

// Words found in the cache, and the same words in a call of their own.
TEST(Tokenizer, LongTextsEncodeLikeTheirWords) {
  TokenizerSpec spec = byte_level_spec();
  add_merges({{"t", "h"}, {"th", "e"}, {"\u0120", "the"}, {"i", "n"}, {"\u0120", "in"}}, &spec);
  PreTokenizerStep step;
  step.pattern = kGpt2Pattern;
  spec.pre_tokenizer = {step};
  const auto tokenizer = make(std::move(spec));
  const std::string_view words[] = {" the", " in", " then", " a", " something", " incomprehensibilities-and-more"};
  std::string text;
  std::vector<int32_t> expected;
  for (int i = 0; i < 2000; ++i) {
    const std::string_view word = words[(i * i + i / 7) % 6];
    text += word;
    const auto part = ids(*tokenizer, word);
    expected.insert(expected.end(), part.begin(), part.end());
  }
  EXPECT_EQ(ids(*tokenizer, text), expected);
}

}  // namespace
}  // namespace quire
