// Tokenizers of real files against goldens that other implementations agreed on.
#include "vocab/tokenizer_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "text/detokenizer.h"

namespace quire {
namespace {

using Json = nlohmann::json;

const std::string kGoldens = std::string(QUIRE_SOURCE_DIR) + "/tests/golden";
const std::string kPeerVocabularies = std::string(QUIRE_SOURCE_DIR) + "/../shared/golden/peer-vocabs";

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::unique_ptr<Tokenizer> open_tokenizer(const std::string& path) {
  const auto checkpoint = Checkpoint::open(path, CheckpointParts::kVocabulary);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  if (!checkpoint.ok()) return nullptr;
  auto tokenizer = load_tokenizer(**checkpoint);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  return tokenizer.ok() ? std::move(*tokenizer) : nullptr;
}

std::vector<int32_t> ids(const Tokenizer& tokenizer, std::string_view text, EncodeOptions options = {}) {
  const auto result = tokenizer.encode(text, options);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? *result : std::vector<int32_t>{-1};
}

struct Model {
  const char* golden;
  const char* file;
  size_t cases;
};

class RealTokenizer : public testing::TestWithParam<Model> {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("QUIRE_MODELS");
    if (folder == nullptr) GTEST_SKIP() << "QUIRE_MODELS names no folder with the models";
    path_ = std::string(folder) + "/" + GetParam().file;
    if (!std::filesystem::exists(path_)) GTEST_SKIP() << path_ << " is missing";
    tokenizer_ = open_tokenizer(path_);
    ASSERT_TRUE(tokenizer_);
  }

  std::string path_;
  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_P(RealTokenizer, EqualsEveryGolden) {
  std::ifstream file(kGoldens + "/tokenizers/" + GetParam().golden + ".jsonl");
  size_t cases = 0;
  for (std::string line; std::getline(file, line); ++cases) {
    const Json c = Json::parse(line);
    const auto got = ids(*tokenizer_, c["text"].get<std::string>(), {c["add_special"], c["parse_special"]});
    EXPECT_EQ(got, c["ids"].get<std::vector<int32_t>>()) << line;
    EXPECT_EQ(tokenizer_->decode(got, true), c["decoded"].get<std::string>()) << line;
    Detokenizer detokenizer(*tokenizer_, true);
    std::string streamed;
    for (const int32_t id : got) streamed += detokenizer.push(id);
    streamed += detokenizer.finish();
    EXPECT_EQ(streamed, c["decoded"].get<std::string>());
  }
  EXPECT_EQ(cases, GetParam().cases);
}

TEST_P(RealTokenizer, IsCompact) { EXPECT_LT(tokenizer_->memory_bytes(), 25'000'000); }

INSTANTIATE_TEST_SUITE_P(Models, RealTokenizer,
                         testing::Values(Model{"smollm2", "smollm2-135m-instruct-q4_1.gguf", 509},
                                         Model{"qwen2.5-coder", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", 476},
                                         Model{"gemma3", "gemma3-270m-q4_k_m.gguf", 522}));

// Where llama.cpp does not normalize, Hugging Face does: it is followed (golden/tokenizers/DISAGREEMENTS.md).
TEST(RealTokenizers, FollowHuggingFaceWhereReadingsDiffer) {
  const char* folder = std::getenv("QUIRE_MODELS");
  if (folder == nullptr) GTEST_SKIP() << "QUIRE_MODELS names no folder with the models";
  const std::string qwen_path = std::string(folder) + "/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf";
  const std::string gemma_path = std::string(folder) + "/gemma3-270m-q4_k_m.gguf";
  if (!std::filesystem::exists(qwen_path) || !std::filesystem::exists(gemma_path)) GTEST_SKIP() << "a model is missing";
  const auto qwen = open_tokenizer(qwen_path);
  const auto gemma = open_tokenizer(gemma_path);
  ASSERT_TRUE(qwen && gemma);
  EXPECT_EQ(ids(*qwen, "cafe\u0301"), (std::vector<int32_t>{924, 58858}));
  EXPECT_EQ(ids(*qwen, "\u00C5 \u212B A\u030A"), (std::vector<int32_t>{144044, 79252, 79252}));
  EXPECT_EQ(ids(*qwen, "e\u0301\u0302\u0303\u0304"), (std::vector<int32_t>{963, 136, 224, 136, 225, 136, 226}));
  EXPECT_EQ(ids(*gemma, "</s>"), std::vector<int32_t>{212});
  EXPECT_EQ(ids(*gemma,
                "\u2581\u2581"
                "a"),
            (std::vector<int32_t>{236743, 496}));
  const auto ends = gemma->end_of_generation_ids();
  EXPECT_EQ(std::vector<int32_t>(ends.begin(), ends.end()), (std::vector<int32_t>{1, 106}));
}

class PeerVocabulary : public testing::TestWithParam<const char*> {};

TEST_P(PeerVocabulary, EqualsEveryVector) {
  const std::string base = kPeerVocabularies + "/ggml-vocab-" + GetParam() + ".gguf";
  if (!std::filesystem::exists(base)) GTEST_SKIP() << base << " is missing";
  const auto tokenizer = open_tokenizer(base);
  ASSERT_TRUE(tokenizer);
  const std::string inputs = read_file(base + ".inp");
  constexpr std::string_view kSeparator = "\n__ggml_vocab_test__\n";
  std::istringstream outputs(read_file(base + ".out"));
  int cases = 0;
  for (size_t at = 0; at <= inputs.size(); ++cases) {
    const size_t end = std::min(inputs.find(kSeparator, at), inputs.size());
    std::string line;
    std::getline(outputs, line);
    std::istringstream numbers(line);
    const std::vector<int32_t> expected{std::istream_iterator<int32_t>(numbers), {}};
    EXPECT_EQ(ids(*tokenizer, inputs.substr(at, end - at)), expected) << cases;
    at = end + kSeparator.size();
  }
  EXPECT_EQ(cases, 47);
}

INSTANTIATE_TEST_SUITE_P(Names, PeerVocabulary, testing::Values("gpt-2", "llama-spm", "phi-3"));

TEST(TinyTokenizers, EqualTheTextsOfTheirCheckpoints) {
  int cases = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kGoldens + "/tiny")) {
    if (!std::filesystem::exists(entry.path() / "tokenizer.json")) continue;
    const auto tokenizer = open_tokenizer(entry.path().string());
    ASSERT_TRUE(tokenizer) << entry.path();
    const Json expected = Json::parse(read_file((entry.path() / "expected.json").string()));
    for (const Json& c : expected["texts"]) {
      ++cases;
      EXPECT_EQ(ids(*tokenizer, c["text"].get<std::string>(), {c["add_special"]}), c["ids"].get<std::vector<int32_t>>())
          << entry.path() << " " << c;
    }
  }
  EXPECT_EQ(cases, 14 * 12);
}

}  // namespace
}  // namespace quire
