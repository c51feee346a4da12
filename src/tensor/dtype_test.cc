#include "tensor/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace quire {
namespace {

// Golden files are made by tools/make_dtype_goldens.py, which describes their layout.
std::string read_golden(const std::string& name) {
  std::ifstream file(std::string(QUIRE_SOURCE_DIR "/tests/golden/dtypes/") + name, std::ios::binary);
  EXPECT_TRUE(file) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Golden {
  int64_t n_blocks = 0;
  const std::byte* first = nullptr;
  const std::byte* second = nullptr;
};

Golden split_golden(const std::string& bytes, size_t first_item_bytes, size_t second_item_bytes) {
  uint32_t n = 0;
  EXPECT_GE(bytes.size(), sizeof n);
  std::memcpy(&n, bytes.data(), sizeof n);
  EXPECT_EQ(bytes.size(), sizeof n + n * (first_item_bytes + second_item_bytes));
  const auto* first = reinterpret_cast<const std::byte*>(bytes.data()) + sizeof n;
  return {n, first, first + n * first_item_bytes};
}

class EveryDType : public testing::TestWithParam<DType> {};

TEST_P(EveryDType, DecodesLikeTheGgufPackage) {
  const DTypeInfo& info = dtype_info(GetParam());
  const std::string bytes = read_golden(std::string(info.name) + ".decode.bin");
  const auto elements = static_cast<size_t>(info.block_elements);
  const Golden golden = split_golden(bytes, static_cast<size_t>(info.block_bytes), elements * sizeof(float));
  std::vector<float> decoded(static_cast<size_t>(golden.n_blocks) * elements);
  info.decode(golden.first, golden.n_blocks, decoded.data());
  for (size_t i = 0; i < decoded.size(); ++i) {
    uint32_t expected;
    std::memcpy(&expected, golden.second + i * sizeof expected, sizeof expected);
    ASSERT_EQ(std::bit_cast<uint32_t>(decoded[i]), expected) << info.name << " weight " << i;
  }
}

class EncodedDType : public testing::TestWithParam<DType> {};

TEST_P(EncodedDType, EncodesLikeTheReference) {
  const DTypeInfo& info = dtype_info(GetParam());
  const std::string bytes = read_golden(std::string(info.name) + ".encode.bin");
  const auto block_bytes = static_cast<size_t>(info.block_bytes);
  const auto elements = static_cast<size_t>(info.block_elements);
  const Golden golden = split_golden(bytes, elements * sizeof(float), block_bytes);
  std::vector<float> weights(static_cast<size_t>(golden.n_blocks) * elements);
  std::memcpy(weights.data(), golden.first, weights.size() * sizeof(float));
  std::vector<std::byte> encoded(static_cast<size_t>(golden.n_blocks) * block_bytes);
  info.encode(weights.data(), golden.n_blocks, encoded.data());
  for (size_t b = 0; b < static_cast<size_t>(golden.n_blocks); ++b) {
    ASSERT_EQ(std::memcmp(&encoded[b * block_bytes], golden.second + b * block_bytes, block_bytes), 0)
        << info.name << " block " << b;
  }
}

TEST_P(EveryDType, IsFoundByItsGgmlId) {
  const DTypeInfo& info = dtype_info(GetParam());
  EXPECT_EQ(info.dtype, GetParam());
  EXPECT_EQ(dtype_from_ggml(static_cast<uint32_t>(info.ggml_type)), &info);
  EXPECT_EQ(ggml_type_name(static_cast<uint32_t>(info.ggml_type)), info.name);
  EXPECT_EQ(row_bytes(info.dtype, 512), 512 / info.block_elements * info.block_bytes);
}

std::vector<DType> every_dtype() {
  std::vector<DType> all;
  for (const DTypeInfo& info : all_dtypes()) all.push_back(info.dtype);
  return all;
}
std::string dtype_name(const testing::TestParamInfo<DType>& each) { return std::string(dtype_info(each.param).name); }

INSTANTIATE_TEST_SUITE_P(DType, EveryDType, testing::ValuesIn(every_dtype()), dtype_name);
INSTANTIATE_TEST_SUITE_P(DType, EncodedDType,
                         testing::Values(DType::kF16, DType::kBF16, DType::kQ4_0, DType::kQ8_0, DType::kQ6_K),
                         dtype_name);

TEST(DType, EncodesBlocksWhoseScaleHasNoInverse) {
  const std::vector<float> tiny(32, 1e-42f);
  for (const DType dtype : {DType::kQ4_0, DType::kQ8_0}) {
    const DTypeInfo& info = dtype_info(dtype);
    std::vector<std::byte> block(static_cast<size_t>(info.block_bytes));
    info.encode(tiny.data(), 1, block.data());
    std::vector<float> decoded(32, 1.0f);
    info.decode(block.data(), 1, decoded.data());
    EXPECT_EQ(decoded, std::vector<float>(32, 0.0f)) << info.name;
  }
}

TEST(DType, NamesTypesItCannotRead) {
  EXPECT_EQ(dtype_from_ggml(16), nullptr);
  EXPECT_STREQ(ggml_type_name(16), "IQ2_XXS");
  EXPECT_STREQ(ggml_type_name(42), "Q2_0");
  EXPECT_EQ(ggml_type_name(4), nullptr);
  EXPECT_EQ(ggml_type_name(77), nullptr);
  EXPECT_EQ(dtype_from_ggml(0xffffffffu), nullptr);
}

}  // namespace
}  // namespace quire
