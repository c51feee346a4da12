#include "formats/gguf_writer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "formats/gguf_file.h"
#include "formats/test_files.h"

namespace quire {
namespace {

using namespace testing_files;  // NOLINT: the vocabulary of this test

std::string contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// Against the bytes of test_files.h, which the reader's tests use.
TEST(GgufWriter, EncodesValuesInTheTypesThatReadersExpect) {
  EXPECT_EQ(encode_gguf_value(true), bool_value(true));
  EXPECT_EQ(encode_gguf_value(uint64_t{32}), u32_value(32));
  EXPECT_EQ(encode_gguf_value(1e-5), f32_value(1e-5f));
  EXPECT_EQ(encode_gguf_value(std::string("llama")), string_value("llama"));
  EXPECT_EQ(encode_gguf_value(std::vector<int64_t>{1, -3}), ints_value({1, -3}));
  EXPECT_EQ(encode_gguf_value(std::vector<double>{0.5, -2.0}), floats_value({0.5f, -2.0f}));
  EXPECT_EQ(encode_gguf_value(std::vector<bool>{true, false}), bools_value({true, false}));
  EXPECT_EQ(encode_gguf_value(std::vector<std::string>{"a", ""}), strings_value({"a", ""}));
  EXPECT_EQ(encode_gguf_value(int64_t{-7}), Bytes().add<uint32_t>(kI32).add<int32_t>(-7).str());
  EXPECT_EQ(encode_gguf_value(int64_t{1} << 31), Bytes().add<uint32_t>(kI64).add(int64_t{1} << 31).str());
  EXPECT_EQ(encode_gguf_value(uint64_t{1} << 32), Bytes().add<uint32_t>(kU64).add(uint64_t{1} << 32).str());
  EXPECT_EQ(
      encode_gguf_value(std::vector<uint64_t>{1, uint64_t{1} << 40}),
      Bytes().add<uint32_t>(kArray).add<uint32_t>(kU64).add<uint64_t>(2).add<uint64_t>(1).add(uint64_t{1} << 40).str());
}

// The whole file, byte for byte, as the test's own writer makes it.
TEST(GgufWriter, WritesTheBytesThatTheFormatDescribes) {
  const Gguf model = small_llama_gguf();
  std::vector<GgufEntry> metadata;
  for (const auto& [key, value] : model.entries) metadata.push_back({key, value});
  std::vector<GgufTensorPlan> plans;
  for (const GgufTensor& tensor : model.tensors) {
    plans.push_back({tensor.name, {tensor.dims.rbegin(), tensor.dims.rend()}, DType::kF32});
  }
  const TempDir dir;
  const std::string path = dir.path() + "/model.gguf";
  auto writer = GgufWriter::create(path, metadata, plans);
  ASSERT_TRUE(writer.ok()) << writer.status().message();
  for (auto tensor = model.tensors.rbegin(); tensor != model.tensors.rend(); ++tensor) {
    ASSERT_TRUE(writer->write(tensor->name, 0, std::as_bytes(std::span(tensor->data))).ok());
  }
  ASSERT_TRUE(writer->finish().ok());
  std::string expected = model.bytes();
  expected.resize((expected.size() + 31) / 32 * 32);
  EXPECT_EQ(contents(path), expected);
}

TEST(GgufWriter, RewritesAValueAndPadsTensors) {
  const TempDir dir;
  const std::string path = dir.path() + "/model.gguf";
  const std::vector<GgufEntry> metadata = {{"a", u32_value(1)}, {"note", string_value("    ")}, {"z", u32_value(2)}};
  const std::vector<GgufTensorPlan> plans = {{"odd", {3}, DType::kF32}, {"blocks", {2, 32}, DType::kQ4_0}};
  auto writer = GgufWriter::create(path, metadata, plans);
  ASSERT_TRUE(writer.ok());
  const std::vector<std::byte> row(18, std::byte{9});
  ASSERT_TRUE(writer->write("blocks", 18, row).ok());
  ASSERT_TRUE(writer->rewrite("note", string_value("{}  ")).ok());
  ASSERT_TRUE(writer->finish().ok());
  const auto file = GgufFile::open(path, true);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(std::get<std::string>(file->metadata.at("note")), "{}  ");
  EXPECT_EQ(std::get<uint64_t>(file->metadata.at("z")), 2u);
  ASSERT_EQ(file->tensors.size(), 2u);
  EXPECT_EQ(file->tensors[1].shape[0], 2);
  EXPECT_EQ(file->tensors[1].shape[1], 32);
  EXPECT_EQ(std::memcmp(file->tensors[1].data + 18, row.data(), row.size()), 0);
  EXPECT_EQ(file->file.bytes().size() % 32, 0u);
  // The entries as they are stored, which is how metadata moves from file to file.
  ASSERT_EQ(file->entries.size(), 3u);
  EXPECT_EQ(file->entries[0].key, "a");
  EXPECT_EQ(file->entries[1].value, string_value("{}  "));
}

}  // namespace
}  // namespace quire
