// Checkpoints written and read again: every value, code, scale and zero point must come back to the bit, whichever format it
// came from and went to. What other programs read in these files is the matter of tests/model/written_checkpoints_test.cc.
#include "formats/checkpoint_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <random>

#include "formats/test_files.h"
#include "tensor/half.h"

namespace quire {
namespace {

using Format = CheckpointTarget::Format;
using testing_files::TempDir;

const std::string kGolden = std::string(QUIRE_SOURCE_DIR) + "/tests/golden/";

std::unique_ptr<Checkpoint> open_checkpoint(const std::string& path) {
  auto opened = Checkpoint::open(path);
  EXPECT_TRUE(opened.ok()) << opened.status().message();
  return opened.ok() ? std::move(*opened) : nullptr;
}

std::vector<float> values_of(const TensorRef& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.rows() * tensor.columns()));
  tensor.decode_f32(0, tensor.rows(), values.data());
  return values;
}

std::function<DType(const TensorRef&)> always(DType dtype) {
  return [dtype](const TensorRef&) { return dtype; };
}

std::string output_path(const TempDir& dir, Format format) {
  return dir.path() + (format == Format::kGguf ? "/out.gguf" : "/out");
}

Status write_plain(const Checkpoint& source, const CheckpointTarget& target, const std::string& path,
                   const CheckpointNotes& notes = {}) {
  QUIRE_ASSIGN_OR_RETURN(const auto writer, CheckpointWriter::create(source, target, path));
  for (const TensorRef& tensor : source.tensors()) {
    QUIRE_RETURN_IF_ERROR(writer->write_values(tensor.name, values_of(tensor)));
  }
  return writer->finish(notes);
}

void expect_same_rope(const RopeParams& a, const RopeParams& b, const std::string& what) {
  EXPECT_EQ(a.theta, b.theta) << what;
  EXPECT_EQ(a.scaling, b.scaling) << what;
  EXPECT_NEAR(a.factor, b.factor, 1e-6) << what;
  EXPECT_EQ(a.beta_fast, b.beta_fast) << what;
  EXPECT_EQ(a.beta_slow, b.beta_slow) << what;
  EXPECT_EQ(a.attention_factor.has_value(), b.attention_factor.has_value()) << what;
}

// `rope`: the scaling is stated in the same way in both.
void expect_same_model(const Hparams& a, const Hparams& b, bool rope, const std::string& what) {
  EXPECT_EQ(a.architecture, b.architecture) << what;
  EXPECT_EQ(a.vocab_size, b.vocab_size) << what;
  EXPECT_EQ(a.context_length, b.context_length) << what;
  EXPECT_EQ(a.hidden, b.hidden) << what;
  EXPECT_EQ(a.layers, b.layers) << what;
  EXPECT_EQ(a.heads, b.heads) << what;
  EXPECT_EQ(a.kv_heads, b.kv_heads) << what;
  EXPECT_EQ(a.head_dim, b.head_dim) << what;
  EXPECT_EQ(a.ffn_hidden, b.ffn_hidden) << what;
  EXPECT_EQ(a.rms_norm_eps, b.rms_norm_eps) << what;
  EXPECT_EQ(a.tied_embeddings, b.tied_embeddings) << what;
  EXPECT_EQ(a.activation, b.activation) << what;
  EXPECT_EQ(a.rope_dim, b.rope_dim) << what;
  EXPECT_EQ(a.sliding_window, b.sliding_window) << what;
  EXPECT_EQ(a.layer_slides, b.layer_slides) << what;
  EXPECT_EQ(a.attention_scale, b.attention_scale) << what;
  EXPECT_EQ(a.attention_softcap, b.attention_softcap) << what;
  EXPECT_EQ(a.final_softcap, b.final_softcap) << what;
  EXPECT_EQ(a.default_temperature, b.default_temperature) << what;
  EXPECT_EQ(a.default_top_k, b.default_top_k) << what;
  EXPECT_EQ(a.default_top_p, b.default_top_p) << what;
  EXPECT_EQ(a.rope_local.has_value(), b.rope_local.has_value()) << what;
  if (rope) expect_same_rope(a.rope, b.rope, what);
  if (a.rope_local && b.rope_local) expect_same_rope(*a.rope_local, *b.rope_local, what);
}

// Factors of rope are a tensor in one format and numbers in the other.
void expect_same_tensors(const Checkpoint& a, const Checkpoint& b, const std::string& what) {
  size_t compared = 0;
  for (const TensorRef& tensor : a.tensors()) {
    if (tensor.name == "rope_freqs.weight") continue;
    const TensorRef* other = b.find(tensor.name);
    ASSERT_NE(other, nullptr) << what << ": " << tensor.name;
    EXPECT_EQ(values_of(tensor), values_of(*other)) << what << ": " << tensor.name;
    ++compared;
  }
  const auto extra = static_cast<size_t>(b.find("rope_freqs.weight") != nullptr);
  EXPECT_EQ(b.tensors().size(), compared + extra) << what;
}

const std::vector<std::string> kSources = {"tiny/gemma3",
                                           "tiny/llama-gqa-llama3rope",
                                           "tiny/llama-linear-rope-bias",
                                           "tiny/llama-mha-spm",
                                           "tiny/llama-mqa-sharded",
                                           "tiny/llama-yarn",
                                           "tiny/mistral-window32",
                                           "tiny/qwen2",
                                           "tiny-gguf/gemma3.gguf",
                                           "tiny-gguf/llama-gqa-llama3rope.gguf",
                                           "tiny-gguf/llama-linear-rope-bias.gguf",
                                           "tiny-gguf/llama-mha-spm.gguf",
                                           "tiny-gguf/llama-mqa-sharded-00002-of-00003.gguf",
                                           "tiny-gguf/llama-yarn.gguf",
                                           "tiny-gguf/qwen2.gguf",
                                           "quantized/gptq-4bit-g32-asym-desc-act"};

TEST(CheckpointWriter, PlainValuesComeBackFromEitherFormatInEither) {
  for (const Format format : {Format::kGguf, Format::kSafetensors}) {
    for (const std::string& name : kSources) {
      const TempDir dir;
      const auto source = open_checkpoint(kGolden + name);
      ASSERT_NE(source, nullptr);
      const std::string path = output_path(dir, format);
      const Status written = write_plain(*source, {.format = format, .dtype = always(DType::kF32)}, path);
      ASSERT_TRUE(written.ok()) << name << ": " << written.message();
      const auto copy = open_checkpoint(path);
      ASSERT_NE(copy, nullptr) << name;
      const bool same_format = source->format() == copy->format();
      expect_same_model(source->hparams(), copy->hparams(), same_format || name.find("llama3") == std::string::npos,
                        name);
      expect_same_tensors(*source, *copy, name);
    }
  }
}

}  // namespace
}  // namespace quire
