#include "formats/safetensors_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "formats/safetensors_file.h"
#include "formats/test_files.h"

namespace quire {
namespace {

using testing_files::TempDir;

std::vector<std::byte> pattern(size_t bytes, int seed) {
  std::vector<std::byte> out(bytes);
  for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<std::byte>(i * 7 + static_cast<size_t>(seed));
  return out;
}

TEST(SafetensorsWriter, TensorsLieAlignedWithoutHolesWhateverTheirOrder) {
  const TempDir dir;
  const std::string path = dir.path() + "/model.safetensors";
  const std::vector<SafetensorsPlan> plans = {{"odd", "F16", {3, 5}}, {"words", "I32", {2, 3}},  {"scalar", "F32", {}},
                                              {"shape", "I64", {2}},  {"empty", "BF16", {0, 4}}, {"bytes", "U8", {7}}};
  auto writer = SafetensorsWriter::create(path, plans);
  ASSERT_TRUE(writer.ok()) << writer.status().message();
  const std::map<std::string, size_t> sizes = {{"odd", 30}, {"words", 24}, {"scalar", 4}, {"shape", 16}, {"bytes", 7}};
  for (const auto& [name, bytes] : sizes) {
    const auto content = pattern(bytes, static_cast<int>(bytes));
    // In two pieces, the later one first.
    ASSERT_TRUE(writer->write(name, 1, std::span(content).subspan(1)).ok());
    ASSERT_TRUE(writer->write(name, 0, std::span(content).first(1)).ok());
  }
  ASSERT_TRUE(writer->finish().ok());

  const auto file = SafetensorsFile::open(path);  // refuses holes, overlaps and bytes left over
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_EQ(file->tensors.size(), plans.size());
  for (const SafetensorsEntry& tensor : file->tensors) {
    const auto plan = std::ranges::find(plans, tensor.name, &SafetensorsPlan::name);
    ASSERT_NE(plan, plans.end());
    EXPECT_EQ(tensor.dtype, plan->dtype);
    EXPECT_EQ(tensor.shape, plan->shape);
    const auto offset = static_cast<size_t>(tensor.data - file->file.bytes().data());
    const size_t element = tensor.dtype == "I64" ? 8 : tensor.dtype.ends_with("32") ? 4 : tensor.dtype == "U8" ? 1 : 2;
    EXPECT_EQ(offset % element, 0u) << tensor.name;
    const auto want = pattern(static_cast<size_t>(tensor.bytes), static_cast<int>(tensor.bytes));
    EXPECT_TRUE(std::equal(want.begin(), want.end(), tensor.data)) << tensor.name;
  }
}

// The bytes, as the format's description has them.
TEST(SafetensorsWriter, WritesTheHeaderThatTheFormatDescribes) {
  const TempDir dir;
  const std::string path = dir.path() + "/model.safetensors";
  auto writer = SafetensorsWriter::create(path, {{"b", "F16", {2}}, {"a", "F32", {1}}});
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->write("a", 0, pattern(4, 1)).ok());
  ASSERT_TRUE(writer->write("b", 0, pattern(4, 2)).ok());
  ASSERT_TRUE(writer->finish().ok());
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  std::string header = R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                       R"("b":{"dtype":"F16","shape":[2],"data_offsets":[4,8]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  EXPECT_EQ(text.str().substr(8, header.size()), header);
  EXPECT_EQ(text.str().size(), 8 + header.size() + 8);
}

}  // namespace
}  // namespace quire
