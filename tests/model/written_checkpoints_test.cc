// Checkpoints that quire writes, read by quire and by others: codes of every quantized format by numpy decoders
// (compare_quantized.py), plain files by the `gguf` and `safetensors` packages (check_written.py), all to the bit. The parts that
// need Python are skipped where none has the packages.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "formats/checkpoint.h"
#include "formats/checkpoint_writer.h"
#include "formats/families.h"
#include "formats/hf_names.h"
#include "support/test_python.h"
#include "tensor/half.h"

namespace quire {
namespace {

using Format = CheckpointTarget::Format;

const std::string kRoot = QUIRE_SOURCE_DIR;
const std::string kGolden = kRoot + "/tests/golden/";

// Removed with everything in it.
class Folder {
 public:
  Folder() : path_(testing::TempDir() + "quire-written-XXXXXX") { EXPECT_NE(::mkdtemp(path_.data()), nullptr); }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

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

bool is_linear(const TensorRef& tensor) { return tensor.rank == 2 && tensor.name.starts_with("blk."); }

// One tensor as the scripts read it.
void add_given(std::ofstream& file, const std::string& name, int64_t rows, const std::vector<float>& values) {
  file << name << ' ' << rows << ' ' << static_cast<int64_t>(values.size()) / rows << '\n';
  file.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(4 * values.size()));
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
      for (const int64_t group : {0, 64}) {
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

using Matrices = std::map<std::string, QuantizedMatrix>;  // by canonical name

// Writes `source` with random codes for its linears, and returns these. From the last tensor to the first: the order is free.
Result<Matrices> write_quantized(const Checkpoint& source, const CheckpointTarget& target, const std::string& path) {
  std::mt19937 random(7);  // NOLINT: the same codes every time
  Matrices matrices;
  QUIRE_ASSIGN_OR_RETURN(const auto writer, CheckpointWriter::create(source, target, path));
  for (auto tensor = source.tensors().rbegin(); tensor != source.tensors().rend(); ++tensor) {
    if (is_linear(*tensor)) {
      const auto& matrix = matrices[tensor->name] = random_matrix(target, tensor->rows(), tensor->columns(), random);
      QUIRE_RETURN_IF_ERROR(writer->write_codes(tensor->name, matrix));
    } else {
      QUIRE_RETURN_IF_ERROR(writer->write_values(tensor->name, values_of(*tensor)));
    }
  }
  QUIRE_RETURN_IF_ERROR(writer->finish({}));
  return matrices;
}

std::vector<float> weights_of(const QuantizedMatrix& m) {
  std::vector<float> weights;
  weights.reserve(m.codes.size());
  for (int64_t row = 0; row < m.n; ++row) {
    for (int64_t column = 0; column < m.k; ++column) weights.push_back(weight(m, row, column));
  }
  return weights;
}

void expect_read_by_quire(const std::string& path, const Checkpoint& source, const Matrices& matrices, bool symmetric) {
  const auto copy = open_checkpoint(path);
  ASSERT_NE(copy, nullptr);
  EXPECT_EQ(copy->tensors().size(), source.tensors().size());
  for (const TensorRef& tensor : copy->tensors()) {
    const auto matrix = matrices.find(tensor.name);
    ASSERT_EQ(tensor.quantized != nullptr, matrix != matrices.end()) << tensor.name;
    if (tensor.quantized != nullptr) {
      EXPECT_EQ(tensor.quantized->type().zeros, !symmetric) << tensor.name;
      EXPECT_EQ(values_of(tensor), weights_of(matrix->second)) << tensor.name;
    } else {
      EXPECT_EQ(values_of(tensor), values_of(*source.find(tensor.name))) << tensor.name;
    }
  }
}

void write_given(const std::string& path, const Checkpoint& source, const Matrices& matrices) {
  const Family& family = *family_by_name(source.hparams().architecture);
  std::ofstream file(path, std::ios::binary);
  for (const auto& [name, matrix] : matrices) {
    const std::string hf = hf_from_canonical(name, family);
    add_given(file, hf.substr(0, hf.rfind('.')), matrix.n, weights_of(matrix));
  }
}

TEST(WrittenCheckpoints, CodesAreReadBackByQuireAndByNumpy) {
  const std::string no_python = no_test_python();
  const auto source = open_checkpoint(kGolden + "quantized/base");
  ASSERT_NE(source, nullptr);
  for (CheckpointTarget target : quantized_targets()) {
    SCOPED_TRACE(describe(target));
    const Folder folder;
    target.dtype = [](const TensorRef&) { return DType::kF32; };
    const auto matrices = write_quantized(*source, target, folder.file("out"));
    ASSERT_TRUE(matrices.ok()) << matrices.status().message();
    expect_read_by_quire(folder.file("out"), *source, *matrices, target.symmetric);
    if (!no_python.empty()) continue;
    write_given(folder.file("given"), *source, *matrices);
    EXPECT_EQ(run_test_python("compare_quantized.py", {folder.file("out"), folder.file("given")}), 0);
  }
  if (!no_python.empty()) GTEST_SKIP() << "read back by quire alone: " << no_python;
}

// A matrix in each type that quire can write, in turn.
class Turns {
 public:
  explicit Turns(std::vector<DType> types) : types_(std::move(types)) {}
  DType of(const TensorRef& tensor) const {
    if (tensor.rank == 1) return DType::kF32;
    const DType dtype = types_[std::hash<std::string>()(tensor.name) % types_.size()];
    return tensor.columns() % dtype_info(dtype).block_elements == 0 ? dtype : DType::kF32;
  }

 private:
  std::vector<DType> types_;
};

// Values as the type keeps them, so that writing rounds nothing.
std::vector<float> rounded(const std::vector<float>& values, DType dtype, std::vector<std::byte>* blocks) {
  const DTypeInfo& info = dtype_info(dtype);
  const int64_t count = static_cast<int64_t>(values.size()) / info.block_elements;
  blocks->resize(static_cast<size_t>(count * info.block_bytes));
  info.encode(values.data(), count, blocks->data());
  std::vector<float> kept(values.size());
  info.decode(blocks->data(), count, kept.data());
  return kept;
}

// Half of the matrices go as values, half as blocks.
Status write_in_turns(const Checkpoint& source, const Turns& turns, const std::string& path, const std::string& given) {
  CheckpointTarget target{.format = Format::kGguf};
  target.dtype = [&](const TensorRef& tensor) { return turns.of(tensor); };
  QUIRE_ASSIGN_OR_RETURN(const auto writer, CheckpointWriter::create(source, target, path));
  std::ofstream file(given, std::ios::binary);
  bool as_blocks = false;
  for (const TensorRef& tensor : source.tensors()) {
    std::vector<std::byte> blocks;
    const std::vector<float> values = rounded(values_of(tensor), turns.of(tensor), &blocks);
    add_given(file, tensor.name, tensor.rows(), values);
    as_blocks = !as_blocks && tensor.rank == 2;
    QUIRE_RETURN_IF_ERROR(as_blocks ? writer->write_blocks(tensor.name, blocks)
                                    : writer->write_values(tensor.name, values));
  }
  return writer->finish({});
}

TEST(WrittenCheckpoints, GgufIsReadByTheGgufPackage) {
  if (const std::string reason = no_test_python(); !reason.empty()) GTEST_SKIP() << reason;
  const Turns turns({DType::kBF16, DType::kF16, DType::kF32, DType::kQ8_0, DType::kQ4_0, DType::kQ6_K});
  for (const std::string name : {"quantized/base", "tiny-gguf/llama-linear-rope-bias.gguf", "tiny-gguf/qwen2.gguf",
                                 "tiny-gguf/gemma3.gguf", "tiny-gguf/llama-gqa-llama3rope.gguf"}) {
    SCOPED_TRACE(name);
    const Folder folder;
    const auto source = open_checkpoint(kGolden + name);
    ASSERT_NE(source, nullptr);
    const Status written = write_in_turns(*source, turns, folder.file("out.gguf"), folder.file("given"));
    ASSERT_TRUE(written.ok()) << written.message();
    EXPECT_EQ(run_test_python("check_written.py", {folder.file("out.gguf"), folder.file("given")}), 0);
  }
}

TEST(WrittenCheckpoints, SafetensorsAreReadByTheirPackage) {
  if (const std::string reason = no_test_python(); !reason.empty()) GTEST_SKIP() << reason;
  for (const std::string name : {"tiny/llama-linear-rope-bias", "tiny/qwen2", "tiny-gguf/gemma3.gguf"}) {
    SCOPED_TRACE(name);
    const Folder folder;
    const auto source = open_checkpoint(kGolden + name);
    ASSERT_NE(source, nullptr);
    const Family& family = *family_by_name(source->hparams().architecture);
    CheckpointTarget target{.format = Format::kSafetensors};
    target.dtype = [](const TensorRef& tensor) { return tensor.rank == 1 ? DType::kF32 : DType::kF16; };
    auto writer = CheckpointWriter::create(*source, target, folder.file("out"));
    ASSERT_TRUE(writer.ok()) << writer.status().message();
    std::ofstream given(folder.file("given"), std::ios::binary);
    for (const TensorRef& tensor : source->tensors()) {
      std::vector<std::byte> blocks;
      std::vector<float> values = rounded(values_of(tensor), target.dtype(tensor), &blocks);
      ASSERT_TRUE((*writer)->write_values(tensor.name, values).ok());
      // Gemma's norms are stored less one.
      if (source->hparams().architecture == "gemma3" && tensor.rank == 1) {
        for (float& value : values) value -= 1.0f;
      }
      add_given(given, hf_from_canonical(tensor.name, family), tensor.rows(), values);
    }
    given.close();
    ASSERT_TRUE((*writer)->finish({}).ok());
    EXPECT_EQ(run_test_python("check_written.py", {folder.file("out/model.safetensors"), folder.file("given")}), 0);
  }
}

}  // namespace
}  // namespace quire
