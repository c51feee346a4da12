#include "formats/checkpoint.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <numbers>
#include <string>
#include <vector>

#include "formats/test_files.h"

namespace quire {
namespace {

using namespace testing_files;

const std::string kTiny = QUIRE_SOURCE_DIR "/tests/golden/tiny/";
const std::string kTwins = QUIRE_SOURCE_DIR "/tests/golden/tiny-gguf/";

std::unique_ptr<Checkpoint> open_or_fail(const std::string& path) {
  auto opened = Checkpoint::open(path);
  EXPECT_TRUE(opened.ok()) << opened.status().message();
  return opened.ok() ? std::move(*opened) : nullptr;
}

std::vector<float> decode_all(const TensorRef& tensor) {
  std::vector<float> out(static_cast<size_t>(tensor.rows() * tensor.columns()));
  tensor.decode_f32(0, tensor.rows(), out.data());
  return out;
}

void expect_same_rope(const RopeParams& a, const RopeParams& b) {
  EXPECT_EQ(a.theta, b.theta);
  EXPECT_EQ(a.scaling, b.scaling);
  EXPECT_EQ(a.factor, b.factor);
  EXPECT_EQ(a.original_context, b.original_context);
  EXPECT_EQ(a.beta_fast, b.beta_fast);
  EXPECT_EQ(a.beta_slow, b.beta_slow);
  EXPECT_EQ(a.attention_factor, b.attention_factor);
}

void expect_same_hparams(const Hparams& a, const Hparams& b) {
  EXPECT_EQ(a.architecture, b.architecture);
  EXPECT_EQ(a.vocab_size, b.vocab_size);
  EXPECT_EQ(a.context_length, b.context_length);
  EXPECT_EQ(a.hidden, b.hidden);
  EXPECT_EQ(a.layers, b.layers);
  EXPECT_EQ(a.heads, b.heads);
  EXPECT_EQ(a.kv_heads, b.kv_heads);
  EXPECT_EQ(a.head_dim, b.head_dim);
  EXPECT_EQ(a.ffn_hidden, b.ffn_hidden);
  EXPECT_EQ(a.rms_norm_eps, b.rms_norm_eps);
  EXPECT_EQ(a.tied_embeddings, b.tied_embeddings);
  EXPECT_EQ(a.activation, b.activation);
  EXPECT_EQ(a.rope_dim, b.rope_dim);
  EXPECT_EQ(a.sliding_window, b.sliding_window);
  EXPECT_EQ(a.layer_slides, b.layer_slides);
  EXPECT_EQ(a.attention_scale, b.attention_scale);
  EXPECT_EQ(a.attention_softcap, b.attention_softcap);
  EXPECT_EQ(a.final_softcap, b.final_softcap);
  EXPECT_EQ(a.eos_token_ids, b.eos_token_ids);
  ASSERT_EQ(a.rope_local.has_value(), b.rope_local.has_value());
  if (a.rope_local) expect_same_rope(*a.rope_local, *b.rope_local);
}

// llama3 scaling is a rule in a directory and a tensor of divisors in GGUF.
std::vector<float> llama3_factors(const Hparams& h) {
  std::vector<float> factors;
  for (int64_t i = 0; i < h.rope_dim; i += 2) {
    const double wavelength =
        2 * std::numbers::pi * std::pow(h.rope.theta, static_cast<double>(i) / static_cast<double>(h.rope_dim));
    const auto original = static_cast<double>(h.rope.original_context);
    const double smooth =
        (original / wavelength - h.rope.low_freq_factor) / (h.rope.high_freq_factor - h.rope.low_freq_factor);
    const double clamped = std::fmin(std::fmax(smooth, 0.0), 1.0);
    factors.push_back(static_cast<float>(1.0 / ((1.0 - clamped) / h.rope.factor + clamped)));
  }
  return factors;
}

struct Twin {
  const char* directory;
  const char* file;
};

class Twins : public testing::TestWithParam<Twin> {};

TEST_P(Twins, HoldTheSameModel) {
  const auto directory = open_or_fail(kTiny + GetParam().directory);
  const auto file = open_or_fail(kTwins + GetParam().file);
  ASSERT_TRUE(directory && file);
  EXPECT_EQ(directory->format(), "safetensors");
  EXPECT_EQ(file->format(), "GGUF v3");
  expect_same_hparams(directory->hparams(), file->hparams());
  const TensorRef* factors = file->find("rope_freqs.weight");
  const bool llama3 = directory->hparams().rope.scaling == RopeScaling::kLlama3;
  ASSERT_EQ(factors != nullptr, llama3);
  if (llama3) {
    EXPECT_EQ(file->hparams().rope.scaling, RopeScaling::kNone);
    EXPECT_EQ(decode_all(*factors), llama3_factors(directory->hparams()));
  } else {
    expect_same_rope(directory->hparams().rope, file->hparams().rope);
  }

  EXPECT_EQ(directory->tensors().size() + (llama3 ? 1 : 0), file->tensors().size());
  for (const TensorRef& tensor : directory->tensors()) {
    const TensorRef* twin = file->find(tensor.name);
    ASSERT_NE(twin, nullptr) << tensor.name;
    ASSERT_EQ(tensor.rank, twin->rank) << tensor.name;
    ASSERT_EQ(tensor.shape, twin->shape) << tensor.name;
    ASSERT_EQ(decode_all(tensor), decode_all(*twin)) << tensor.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Checkpoint, Twins,
                         testing::Values(Twin{"gemma3", "gemma3.gguf"},
                                         Twin{"llama-gqa-llama3rope", "llama-gqa-llama3rope.gguf"},
                                         Twin{"llama-linear-rope-bias", "llama-linear-rope-bias.gguf"},
                                         Twin{"llama-mha-spm", "llama-mha-spm.gguf"},
                                         Twin{"llama-mqa-sharded", "llama-mqa-sharded-00001-of-00003.gguf"},
                                         Twin{"llama-mqa-sharded", "llama-mqa-sharded-00003-of-00003.gguf"},
                                         Twin{"llama-yarn", "llama-yarn.gguf"}, Twin{"qwen2", "qwen2.gguf"}));

TEST(Checkpoint, UndoesTheRowOrderOfLlamaGguf) {
  const auto file = open_or_fail(kTwins + "llama-linear-rope-bias.gguf");
  ASSERT_TRUE(file);
  const TensorRef* q = file->find("blk.1.attn_q.weight");
  ASSERT_NE(q, nullptr);
  EXPECT_EQ(q->interleaved_head_dim, 16);
  // Head 2, second half, pair 3: canonical row 32 + 8 + 3 is stored at 32 + 2 * 3 + 1.
  EXPECT_EQ(q->row(43), q->data + 39 * row_bytes(q->dtype, q->columns()));
  std::vector<float> row(static_cast<size_t>(q->columns()));
  q->decode_f32(43, 1, row.data());
  const std::vector<float> all = decode_all(*q);
  EXPECT_TRUE(std::equal(row.begin(), row.end(), all.begin() + 43 * q->columns()));
  EXPECT_EQ(file->find("blk.1.attn_v.weight")->interleaved_head_dim, 0);
  EXPECT_EQ(file->find("blk.1.attn_k.bias")->interleaved_head_dim, 16);
}

TEST(Checkpoint, AddsOneToGemmaNormsOfDirectoriesOnly) {
  const auto directory = open_or_fail(kTiny + "gemma3");
  const auto file = open_or_fail(kTwins + "gemma3.gguf");
  ASSERT_TRUE(directory && file);
  for (const char* name : {"output_norm.weight", "blk.0.attn_q_norm.weight", "blk.3.post_ffw_norm.weight"}) {
    EXPECT_TRUE(directory->find(name)->add_one) << name;
    EXPECT_FALSE(file->find(name)->add_one) << name;
  }
  EXPECT_FALSE(directory->find("token_embd.weight")->add_one);
}

TEST(Checkpoint, OffersDocumentsOrMetadata) {
  const auto directory = open_or_fail(kTiny + "qwen2");
  const auto file = open_or_fail(kTwins + "qwen2.gguf");
  ASSERT_TRUE(directory && file);
  ASSERT_NE(directory->document("tokenizer.json"), nullptr);
  EXPECT_EQ(directory->document("tokenizer.json")->front(), '{');
  EXPECT_EQ(directory->document("chat_template.jinja"), nullptr);
  EXPECT_EQ(directory->document("../qwen2/config.json"), nullptr);
  EXPECT_EQ(directory->meta("general.architecture"), nullptr);
  EXPECT_EQ(file->document("tokenizer.json"), nullptr);
  const MetaValue* tokens = file->meta("tokenizer.ggml.tokens");
  ASSERT_NE(tokens, nullptr);
  EXPECT_EQ(std::get<std::vector<std::string>>(*tokens).at(3), "<|user|>");
  EXPECT_EQ(std::get<uint64_t>(*file->meta("tokenizer.ggml.bos_token_id")), 1u);
  EXPECT_EQ(std::get<bool>(*file->meta("tokenizer.ggml.add_bos_token")), false);
}

TEST(Checkpoint, ReadsTheVocabularyOfAnyArchitecture) {
  const TempDir dir;
  Gguf gguf = small_llama_gguf();
  gguf.set("general.architecture", string_value("gpt2"));
  gguf.tensor("output.weight").type = 16;
  const std::string path = dir.write("gpt2.gguf", gguf.bytes());
  EXPECT_FALSE(Checkpoint::open(path).ok());
  const auto vocabulary = Checkpoint::open(path, CheckpointParts::kVocabulary);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status().message();
  EXPECT_EQ((*vocabulary)->hparams().architecture, "gpt2");
  EXPECT_EQ((*vocabulary)->hparams().vocab_size, 8);
  EXPECT_EQ((*vocabulary)->hparams().eos_token_ids, std::vector<int32_t>{1});
  EXPECT_TRUE((*vocabulary)->tensors().empty());

  const auto directory = Checkpoint::open(kTiny + "phi3", CheckpointParts::kVocabulary);
  ASSERT_TRUE(directory.ok()) << directory.status().message();
  EXPECT_EQ((*directory)->hparams().architecture, "phi3");
  EXPECT_EQ((*directory)->hparams().eos_token_ids, std::vector<int32_t>{2});
  EXPECT_NE((*directory)->document("tokenizer.json"), nullptr);
}

TEST(Checkpoint, SaysWhatIsWrongWithAPath) {
  const TempDir dir;
  const auto message = [](const std::string& path) {
    const auto opened = Checkpoint::open(path);
    return opened.ok() ? std::string("opened") : opened.status().message();
  };
  EXPECT_NE(message(dir.path() + "/absent").find("no such file"), std::string::npos);
  EXPECT_NE(message(dir.path()).find("config.json"), std::string::npos);
  EXPECT_NE(message(dir.write("model.safetensors", "x")).find("directory"), std::string::npos);
  EXPECT_NE(message(dir.write("empty.gguf", "")).find("not a GGUF file"), std::string::npos);
  EXPECT_NE(message("/dev/null").find("not a regular file"), std::string::npos);
}

TEST(Checkpoint, OpensTheRealModels) {
  const char* models = std::getenv("QUIRE_MODELS");
  if (models == nullptr) GTEST_SKIP() << "QUIRE_MODELS is not set";
  struct Real {
    const char* file;
    size_t tensors;
    bool tied;
    std::vector<int32_t> eos;
  };
  const Real reals[] = {{"smollm2-135m-instruct-q4_1.gguf", 272, true, {0, 2}},
                        {"gemma3-270m-q4_k_m.gguf", 236, true, {1, 106}},
                        {"qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", 291, false, {151643, 151645}},
                        {"qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", 339, false, {151643, 151645}}};
  for (const Real& real : reals) {
    const std::string path = std::string(models) + "/" + real.file;
    if (!std::filesystem::exists(path)) continue;
    const auto model = open_or_fail(path);
    ASSERT_TRUE(model);
    EXPECT_EQ(model->tensors().size(), real.tensors) << real.file;
    EXPECT_TRUE(model->unused_tensors().empty()) << real.file;
    EXPECT_EQ(model->hparams().tied_embeddings, real.tied) << real.file;
    EXPECT_EQ(model->hparams().eos_token_ids, real.eos) << real.file;
  }
}

}  // namespace
}  // namespace quire
