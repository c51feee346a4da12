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

bool is_linear(const TensorRef& tensor) { return tensor.rank == 2 && tensor.name.starts_with("blk."); }

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

// Codes of a grid that no quantizer would choose: every code, scale and zero point differs from its neighbours.
QuantizedMatrix random_matrix(const CheckpointTarget& target, int64_t n, int64_t k, std::mt19937& random) {
  QuantizedMatrix m;
  m.bits = target.bits;
  m.n = n;
  m.k = k;
  m.group = target.group == 0 ? k : target.group;
  const int64_t groups = (k + m.group - 1) / m.group;
  const int largest = (1 << target.bits) - 1;
  for (int64_t i = 0; i < n * k; ++i) m.codes.push_back(static_cast<uint8_t>(random() & largest));
  for (int64_t i = 0; i < n * groups; ++i) {
    m.scales.push_back(f16_to_f32(static_cast<uint16_t>(0x1000 + random() % 0x2000)));
    m.zeros.push_back(static_cast<uint8_t>(target.symmetric ? 1 << (target.bits - 1) : random() & largest));
  }
  if (target.act_order) {
    for (int64_t i = 0; i < k; ++i) m.group_of.push_back(static_cast<int32_t>(i / m.group));
    std::ranges::shuffle(m.group_of, random);
  }
  return m;
}

float weight(const QuantizedMatrix& m, int64_t row, int64_t column) {
  const int64_t groups = (m.k + m.group - 1) / m.group;
  const int64_t group = m.group_of.empty() ? column / m.group : m.group_of[static_cast<size_t>(column)];
  const auto cell = static_cast<size_t>(row * groups + group);
  return m.scales[cell] * static_cast<float>(m.codes[static_cast<size_t>(row * m.k + column)] - m.zeros[cell]);
}

std::string describe(const CheckpointTarget& target) {
  const char* formats[] = {"gguf", "safetensors", "gptq", "awq", "compressed-tensors"};
  return std::string(formats[static_cast<int>(target.format)]) + " " + std::to_string(target.bits) + "-bit g" +
         std::to_string(target.group) + (target.symmetric ? " symmetric" : " asymmetric") +
         (target.act_order ? " act-order" : "");
}

std::vector<CheckpointTarget> quantized_targets() {
  std::vector<CheckpointTarget> targets;
  for (const Format format : {Format::kGptq, Format::kAwq, Format::kCompressedTensors}) {
    for (const int bits : {4, 8}) {
      for (const int64_t group : {0, 32, 64, 128}) {
        for (const int flags : {0, 1, 2, 3}) {
          CheckpointTarget target{.format = format, .scheme = "rtn", .bits = bits, .group = group};
          target.symmetric = (flags & 1) != 0;
          target.act_order = (flags & 2) != 0;
          if (format == Format::kAwq && (bits == 8 || group == 0 || target.act_order)) continue;
          targets.push_back(target);
        }
      }
    }
  }
  return targets;
}

TEST(CheckpointWriter, CodesComeBackFromEveryQuantizedFormat) {
  const auto source = open_checkpoint(kGolden + "quantized/base");
  ASSERT_NE(source, nullptr);
  std::mt19937 random(7);  // NOLINT: the same codes every time
  for (CheckpointTarget target : quantized_targets()) {
    const std::string what = describe(target);
    const TempDir dir;
    target.dtype = always(DType::kF32);
    auto writer = CheckpointWriter::create(*source, target, dir.path() + "/out");
    ASSERT_TRUE(writer.ok()) << what << ": " << writer.status().message();
    std::map<std::string, QuantizedMatrix> written;
    // From the last to the first: the order is free.
    for (auto tensor = source->tensors().rbegin(); tensor != source->tensors().rend(); ++tensor) {
      Status status;
      if (is_linear(*tensor)) {
        const auto& matrix = written[tensor->name] = random_matrix(target, tensor->rows(), tensor->columns(), random);
        status = (*writer)->write_codes(tensor->name, matrix);
      } else {
        status = (*writer)->write_values(tensor->name, values_of(*tensor));
      }
      ASSERT_TRUE(status.ok()) << what << ": " << status.message();
    }
    const Status finished = (*writer)->finish({});
    ASSERT_TRUE(finished.ok()) << what << ": " << finished.message();
    const auto copy = open_checkpoint(dir.path() + "/out");
    ASSERT_NE(copy, nullptr) << what;
    expect_same_model(source->hparams(), copy->hparams(), true, what);
    for (const TensorRef& tensor : copy->tensors()) {
      const auto matrix = written.find(tensor.name);
      ASSERT_EQ(tensor.quantized != nullptr, matrix != written.end()) << what << ": " << tensor.name;
      if (matrix == written.end()) {
        EXPECT_EQ(values_of(tensor), values_of(*source->find(tensor.name))) << what << ": " << tensor.name;
        continue;
      }
      EXPECT_EQ(tensor.quantized->type().zeros, !target.symmetric) << what;
      const std::vector<float> got = values_of(tensor);
      for (int64_t row = 0; row < tensor.rows(); ++row) {
        for (int64_t column = 0; column < tensor.columns(); ++column) {
          ASSERT_EQ(got[static_cast<size_t>(row * tensor.columns() + column)], weight(matrix->second, row, column))
              << what << ": " << tensor.name << " at " << row << ", " << column;
        }
      }
    }
  }
}

}  // namespace
}  // namespace quire
