// Tokenizers that crossed to the other format and back, against the originals: the same ids for the goldens' texts and for
// random ones, the same bytes for every token. GGUF keys are also held against files that the `gguf` package wrote.
#include "vocab/tokenizer_export.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "vocab/test_checkpoint.h"
#include "vocab/tokenizer_source.h"

namespace quire {
namespace {

using Json = nlohmann::json;
using testing_checkpoint::MetaCheckpoint;

const std::string kGoldens = std::string(QUIRE_SOURCE_DIR) + "/tests/golden";
const std::string kShared = std::string(QUIRE_SOURCE_DIR) + "/../shared/golden";

struct Question {
  std::string text;
  EncodeOptions options;
};

std::vector<Question> golden_questions() {
  std::vector<Question> questions;
  for (const char* name : {"smollm2", "qwen2.5-coder", "gemma3"}) {
    std::ifstream file(kGoldens + "/tokenizers/" + name + ".jsonl");
    for (std::string line; std::getline(file, line);) {
      const Json c = Json::parse(line);
      questions.push_back({c["text"], {c["add_special"], c["parse_special"]}});
    }
  }
  EXPECT_EQ(questions.size(), 509u + 476u + 522u);
  return questions;
}

// What random texts are made of: words, runs, letters of many scripts, emoji, what is not in NFC, bytes that are not UTF-8.
const std::vector<std::string>& atoms() {
  static const std::vector<std::string> kAtoms = {" ",
                                                  " ",
                                                  " ",
                                                  "  ",
                                                  "    ",
                                                  "\n",
                                                  "\n\n",
                                                  "\r\n",
                                                  "\t",
                                                  "\t\t",
                                                  "a",
                                                  "e",
                                                  "t",
                                                  "the",
                                                  "ing",
                                                  " of",
                                                  "Hello",
                                                  "WORLD",
                                                  "don't",
                                                  "'s",
                                                  "'LL",
                                                  "0",
                                                  "7",
                                                  "2024",
                                                  "3.14",
                                                  ".",
                                                  "...",
                                                  "--",
                                                  "----",
                                                  "==",
                                                  "!",
                                                  "?!",
                                                  "(",
                                                  ")",
                                                  "{}",
                                                  "//",
                                                  "\\",
                                                  "_",
                                                  "\u2581",
                                                  "\u00e9",
                                                  "e\u0301",
                                                  "\u00df",
                                                  "\u4e2d\u6587",
                                                  "\u3042",
                                                  "\ud55c",
                                                  "\u0434\u0430",
                                                  "\u0628",
                                                  "\u0e44",
                                                  "\u0928",
                                                  "\U0001f600",
                                                  "\U0001f44d\U0001f3fd",
                                                  "\u2764\ufe0f",
                                                  "\u200d",
                                                  "\u00a0",
                                                  "\u3000",
                                                  "\ufffd",
                                                  std::string(1, '\0'),
                                                  "\x7f",
                                                  "\xff",
                                                  "\xc3",
                                                  "\xe4\xb8",
                                                  "\xed\xa0\x80",
                                                  "<",
                                                  ">",
                                                  "<0x41>",
                                                  "<s>",
                                                  "</s>",
                                                  "<unk>",
                                                  "[PAD7]"};
  return kAtoms;
}

std::vector<Question> random_questions(const std::vector<std::string>& special, int count) {
  const char* given = std::getenv("QUIRE_TOKENIZER_SEED");
  const auto seed = given != nullptr ? static_cast<uint32_t>(std::stoul(given)) : std::random_device()();
  std::printf("QUIRE_TOKENIZER_SEED=%u\n", seed);
  std::mt19937 random(seed);
  const auto below = [&random](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  std::vector<Question> questions;
  for (int n = 0; n < count; ++n) {
    Question q{"", {.add_special = below(2) == 0, .parse_special = below(2) == 0}};
    for (size_t i = below(24) + 1; i > 0; --i) {
      const std::string atom =
          !special.empty() && below(8) == 0 ? special[below(special.size())] : atoms()[below(atoms().size())];
      for (size_t repeat = below(6) == 0 ? below(40) + 1 : 1; repeat > 0; --repeat) q.text += atom;
    }
    questions.push_back(std::move(q));
  }
  return questions;
}

std::unique_ptr<Checkpoint> open(const std::string& path) {
  auto checkpoint = Checkpoint::open(path, CheckpointParts::kVocabulary);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  return checkpoint.ok() ? std::move(*checkpoint) : nullptr;
}

// Which ids a Hugging Face checkpoint ends at, as config files state them.
std::vector<int32_t> stated_ends(const std::string& generation_config) {
  const Json ends = Json::parse(generation_config).value("eos_token_id", Json::array());
  return ends.is_array() ? ends.get<std::vector<int32_t>>() : std::vector<int32_t>{ends.get<int32_t>()};
}

std::unique_ptr<MetaCheckpoint> to_hf(const Checkpoint& gguf) {
  const auto documents = hf_tokenizer_documents(gguf);
  EXPECT_TRUE(documents.ok()) << documents.status().message();
  if (!documents.ok()) return nullptr;
  auto hf = std::make_unique<MetaCheckpoint>(
      std::map<std::string, std::string, std::less<>>(documents->begin(), documents->end()));
  hf->hparams().eos_token_ids = stated_ends(documents->at("generation_config.json"));
  hf->hparams().vocab_size =
      static_cast<int64_t>(std::get<std::vector<std::string>>(*gguf.meta("tokenizer.ggml.tokens")).size());
  return hf;
}

std::unique_ptr<MetaCheckpoint> to_gguf(const Checkpoint& hf) {
  const auto keys = gguf_tokenizer_metadata(hf);
  EXPECT_TRUE(keys.ok()) << keys.status().message();
  if (!keys.ok()) return nullptr;
  return std::make_unique<MetaCheckpoint>(std::map<std::string, MetaValue, std::less<>>(keys->begin(), keys->end()));
}

std::unique_ptr<Tokenizer> tokenizer_of(const Checkpoint& checkpoint) {
  auto tokenizer = load_tokenizer(checkpoint);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  return tokenizer.ok() ? std::move(*tokenizer) : nullptr;
}

void expect_same(const Tokenizer& original, const Tokenizer& converted, const std::vector<Question>& questions) {
  int differences = 0;
  // Tokens that the embedding has no row for are left out of a GGUF file.
  const int32_t rows = std::min(original.vocab_size(), converted.vocab_size());
  for (const Question& q : questions) {
    const auto expected = original.encode(q.text, q.options), got = converted.encode(q.text, q.options);
    ASSERT_TRUE(expected.ok() && got.ok());
    if (std::ranges::any_of(*expected, [&](int32_t id) { return id >= rows; })) continue;
    EXPECT_EQ(*got, *expected) << testing::PrintToString(q.text) << " add_special " << q.options.add_special
                               << " parse_special " << q.options.parse_special;
    EXPECT_EQ(converted.decode(*got, true), original.decode(*expected, true));
    differences += *got != *expected;
    ASSERT_LT(differences, 5) << "and more";
  }
  for (int32_t id = 0; id < rows; ++id) {
    for (const bool render : {false, true}) {
      ASSERT_EQ(converted.token_bytes(id, render), original.token_bytes(id, render)) << id;
    }
  }
  const auto list = [](std::span<const int32_t> ids) { return std::vector<int32_t>(ids.begin(), ids.end()); };
  EXPECT_EQ(list(converted.end_of_generation_ids()), list(original.end_of_generation_ids()));
  EXPECT_EQ(converted.bos_id(), original.bos_id());
  EXPECT_EQ(converted.adds_bos(), original.adds_bos());
  EXPECT_EQ(converted.strips_leading_space(), original.strips_leading_space());
}

// Texts of added tokens, for random texts to hold.
std::vector<std::string> added_texts(const Checkpoint& checkpoint) {
  const auto spec = tokenizer_spec_of(checkpoint);
  std::vector<std::string> texts;
  for (const AddedToken& token : spec->added_tokens) texts.push_back(token.text);
  if (texts.size() > 300) texts.resize(300);
  return texts;
}

void expect_same_tokenizer(const Checkpoint& original, const Checkpoint& converted, int randoms) {
  const auto a = tokenizer_of(original), b = tokenizer_of(converted);
  ASSERT_TRUE(a && b);
  expect_same(*a, *b, golden_questions());
  expect_same(*a, *b, random_questions(added_texts(original), randoms));
  const auto before = special_token_texts(original), after = special_token_texts(converted);
  ASSERT_TRUE(before.ok() && after.ok());
  for (const auto& special : *before) {
    const auto ids = a->encode(special.second, {.parse_special = true});
    if (ids.ok() && ids->size() == 1 && ids->front() >= b->vocab_size()) continue;
    EXPECT_NE(std::find(after->begin(), after->end(), special), after->end()) << special.first;
  }
  EXPECT_EQ(*chat_template_source(converted), *chat_template_source(original));
}

class GgufTokenizerExport : public testing::TestWithParam<const char*> {};

TEST_P(GgufTokenizerExport, IsTheSameInHuggingFaceFormAndBack) {
  const std::string name = GetParam();
  const char* models = std::getenv("QUIRE_MODELS");
  const bool is_model = !name.starts_with("ggml-vocab") && !name.starts_with("tiny-gguf");
  if (is_model && models == nullptr) GTEST_SKIP() << "QUIRE_MODELS names no folder with the models";
  const std::string path = (is_model                        ? std::string(models)
                            : name.starts_with("tiny-gguf") ? kGoldens
                                                            : kShared + "/peer-vocabs") +
                           "/" + name;
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is missing";
  const auto gguf = open(path);
  ASSERT_TRUE(gguf);
  const auto hf = to_hf(*gguf);
  ASSERT_TRUE(hf);
  expect_same_tokenizer(*gguf, *hf, 3000);
  const auto back = to_gguf(*hf);
  ASSERT_TRUE(back);
  expect_same_tokenizer(*gguf, *back, 3000);
  for (const char* key : {"tokens", "merges"}) {
    const MetaValue* before = gguf->meta(std::string("tokenizer.ggml.") + key);
    const MetaValue* after = back->meta(std::string("tokenizer.ggml.") + key);
    EXPECT_TRUE(before == nullptr || *after == *before) << key;
  }
  // Whether a control token is also "unknown" is a matter of taste that files disagree about.
  auto types = std::get<std::vector<int64_t>>(*gguf->meta("tokenizer.ggml.token_type"));
  auto types_after = std::get<std::vector<int64_t>>(*back->meta("tokenizer.ggml.token_type"));
  std::replace(types.begin(), types.end(), int64_t{2}, int64_t{3});
  std::replace(types_after.begin(), types_after.end(), int64_t{2}, int64_t{3});
  EXPECT_EQ(types_after, types);
}

INSTANTIATE_TEST_SUITE_P(Files, GgufTokenizerExport,
                         testing::Values("smollm2-135m-instruct-q4_1.gguf", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
                                         "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", "gemma3-270m-q4_k_m.gguf",
                                         "ggml-vocab-gpt-2.gguf", "ggml-vocab-llama-spm.gguf", "ggml-vocab-phi-3.gguf",
                                         "tiny-gguf/llama-mha-spm.gguf", "tiny-gguf/qwen2.gguf"),
                         [](const auto& file) {
                           std::string name = std::filesystem::path(file.param).stem().string();
                           for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
                           return name;
                         });

// The tokens of real vocabularies are also found again after the way back to a file's keys, in every checkpoint that tests
// hold as a directory.
TEST(HfTokenizerExport, IsTheSameInGgufFormAndBack) {
  int directories = 0;
  for (const char* folder : {"/tiny", "/quantized"}) {
    for (const auto& entry : std::filesystem::directory_iterator(kGoldens + folder)) {
      if (!std::filesystem::exists(entry.path() / "tokenizer.json")) continue;
      SCOPED_TRACE(entry.path());
      const auto hf = open(entry.path().string());
      ASSERT_TRUE(hf);
      const auto gguf = to_gguf(*hf);
      ASSERT_TRUE(gguf);
      expect_same_tokenizer(*hf, *gguf, 200);
      const auto back = to_hf(*gguf);
      ASSERT_TRUE(back);
      expect_same_tokenizer(*hf, *back, 200);
      ++directories;
    }
  }
  EXPECT_GE(directories, 14 + 16);
}

// tools/make_gguf_twins.py wrote these with the `gguf` package, scores from a SentencePiece model.
TEST(HfTokenizerExport, WritesTheKeysThatOtherConvertersWrite) {
  for (const char* name :
       {"gemma3", "llama-gqa-llama3rope", "llama-linear-rope-bias", "llama-mha-spm", "llama-yarn", "qwen2"}) {
    SCOPED_TRACE(name);
    const auto twin = open(kGoldens + "/tiny-gguf/" + name + ".gguf");
    const auto hf = open(kGoldens + "/tiny/" + name);
    ASSERT_TRUE(twin && hf);
    const auto keys = gguf_tokenizer_metadata(*hf);
    ASSERT_TRUE(keys.ok()) << keys.status().message();
    int compared = 0;
    for (const char* key :
         {"tokenizer.ggml.model", "tokenizer.ggml.pre", "tokenizer.ggml.tokens", "tokenizer.ggml.merges",
          "tokenizer.ggml.scores", "tokenizer.ggml.token_type", "tokenizer.ggml.bos_token_id",
          "tokenizer.ggml.eos_token_id", "tokenizer.ggml.padding_token_id", "tokenizer.ggml.unknown_token_id",
          "tokenizer.ggml.add_bos_token", "tokenizer.chat_template"}) {
      const MetaValue* expected = twin->meta(key);
      if (expected == nullptr) continue;
      ASSERT_TRUE(keys->contains(key)) << key;
      MetaValue got = keys->at(key);
      // transformers reads a qwen2 directory with its class's own pattern, whatever tokenizer.json says.
      if (std::string_view(name) == "qwen2" && std::string_view(key) == "tokenizer.ggml.pre") {
        EXPECT_EQ(std::get<std::string>(got), "qwen2");
        continue;
      }
      if (std::string_view(name) == "llama-mha-spm" && std::string_view(key) == "tokenizer.ggml.token_type") {
        // The directory does not list <unk> among the added tokens, so its spelling is ordinary text there.
        EXPECT_EQ(std::get<std::vector<int64_t>>(got)[3], 1);
        std::get<std::vector<int64_t>>(got)[3] = 2;
      }
      EXPECT_TRUE(got == *expected) << key;
      ++compared;
    }
    EXPECT_GE(compared, 9);
  }
}

}  // namespace
}  // namespace quire
