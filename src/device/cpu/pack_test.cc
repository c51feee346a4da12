#include "device/cpu/pack.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "device/memory.h"

namespace quire::cpu {
namespace {

// Random bytes as blocks; 16-bit scales with an exponent of all ones (infinity, NaN) are made finite.
std::vector<std::byte> random_rows(DType dtype, int64_t rows, int64_t k, std::mt19937_64& random) {
  std::vector<std::byte> bytes(static_cast<size_t>(rows * row_bytes(dtype, k)));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() & 0xbb);
  return bytes;
}

// Packing must lose nothing: every weight read back from the strip is the very float that the stored block decodes to.
TEST(Pack, StripsDecodeToTheStoredValues) {
  for (const DTypeInfo& info : all_dtypes()) {
    std::mt19937_64 random(7);
    for (const int64_t k : {int64_t{info.block_elements} * (info.block_elements == 256 ? 3 : 1),
                            int64_t{info.block_elements} * 96 / std::min(info.block_elements, 32)}) {
      const int64_t n = 37;
      const std::vector<std::byte> stored = random_rows(info.dtype, n, k, random);
      PackedMatrix matrix;
      matrix.format = tile_format(info.dtype);
      matrix.layout = strip_layout(matrix.format, k);
      matrix.n = n;
      matrix.k = k;
      auto memory = Buffer::allocate(strip_count(n) * matrix.layout.bytes, "a test");
      ASSERT_TRUE(memory.ok());
      matrix.data = memory->data();
      StripPacker packer(info.dtype, k);
      for (int64_t strip = 0; strip < strip_count(n); ++strip) {
        std::array<const std::byte*, kStripRows> rows{};
        for (int64_t r = 0; r < kStripRows && strip * kStripRows + r < n; ++r) {
          rows[static_cast<size_t>(r)] = stored.data() + (strip * kStripRows + r) * row_bytes(info.dtype, k);
        }
        packer.pack(rows, memory->data() + strip * matrix.layout.bytes);
      }
      std::vector<float> want(static_cast<size_t>(k));
      std::vector<float> got(static_cast<size_t>(matrix.layout.k_padded));
      for (int64_t row = 0; row < strip_count(n) * kStripRows; ++row) {
        decode_strip_row(matrix, matrix.strip(row / kStripRows), row % kStripRows, 0, matrix.layout.k_padded,
                         got.data());
        if (row < n) info.decode(stored.data() + row * row_bytes(info.dtype, k), k / info.block_elements, want.data());
        for (int64_t i = 0; i < matrix.layout.k_padded; ++i) {
          const float expected = row < n && i < k ? want[static_cast<size_t>(i)] : 0.0f;
          ASSERT_EQ(got[static_cast<size_t>(i)], expected) << info.name << " row " << row << " k " << i;
        }
      }
    }
  }
}

// The same for codes with scales: kInt4 and kInt8 with and without zero points, and E4M3.
TEST(Pack, StripsDecodeToWhatCodesStandFor) {
  const int64_t n = 21;
  const int64_t k = 160;
  for (const CodeKind codes : {CodeKind::kInt4, CodeKind::kInt8, CodeKind::kFp8}) {
    for (const DType scale : {DType::kF16, DType::kBF16, DType::kF32}) {
      for (const bool zeros : {false, true}) {
        for (const int32_t group : {32, 64, kWholeRow}) {
          if (zeros && codes == CodeKind::kFp8) continue;
          WeightType type(scale);
          type.codes = codes;
          type.zeros = zeros;
          type.group = group;
          const int mask = codes == CodeKind::kInt4 ? 15 : 255;
          const auto code_of = [&](int64_t row, int64_t i) { return static_cast<uint8_t>((row * 7 + i * 5) & mask); };
          const auto scale_of = [](int64_t row, int64_t g) {
            return 0.25f * static_cast<float>(1 + (row + 3 * g) % 9);
          };
          const auto zero_of = [&](int64_t row, int64_t g) { return static_cast<uint8_t>((row * 11 + g * 3) & mask); };
          PackedMatrix matrix{
              .format = tile_format(type), .layout = strip_layout(tile_format(type), k), .n = n, .k = k};
          auto memory = Buffer::allocate(strip_count(n) * matrix.layout.bytes, "a test");
          ASSERT_TRUE(memory.ok());
          matrix.data = memory->data();
          StripPacker packer(type, k);
          for (int64_t strip = 0; strip < strip_count(n); ++strip) {
            packer.pack(
                [&](int64_t first, int64_t rows, const CodeRows& out) {
                  for (int64_t r = 0; r < rows; ++r) {
                    for (int64_t i = 0; i < k; ++i) out.codes[r * out.code_stride + i] = code_of(first + r, i);
                    for (int64_t g = 0; g < out.groups; ++g) {
                      out.scales[r * out.groups + g] = scale_of(first + r, g);
                      out.zeros[r * out.groups + g] = zero_of(first + r, g);
                    }
                  }
                },
                strip * kStripRows, std::min(kStripRows, n - strip * kStripRows),
                memory->data() + strip * matrix.layout.bytes);
          }
          std::vector<float> got(static_cast<size_t>(k));
          for (int64_t row = 0; row < strip_count(n) * kStripRows; ++row) {
            decode_strip_row(matrix, matrix.strip(row / kStripRows), row % kStripRows, 0, k, got.data());
            for (int64_t i = 0; i < k; ++i) {
              const int64_t g = i / group;
              const int zero = zeros ? zero_of(row, g) : codes == CodeKind::kInt4 ? 8 : 128;
              const float value =
                  codes == CodeKind::kFp8 ? e4m3_to_f32(code_of(row, i)) : static_cast<float>(code_of(row, i) - zero);
              const float want = row < n ? scale_of(row, g) * value : 0.0f;
              if (std::isnan(want)) continue;
              ASSERT_EQ(got[static_cast<size_t>(i)], want) << "row " << row << " k " << i;
            }
          }
        }
      }
    }
  }
}

TEST(StripLayout, TakesNoMoreThanTheFile) {
  // Bits a weight, packed, against the stored format: the same, or what the layout's header says.
  const struct {
    DType dtype;
    double bits;
  } kExpected[] = {{DType::kQ4_0, 4.5},  {DType::kQ4_1, 5.0},   {DType::kQ5_0, 5.5},  {DType::kQ8_0, 8.5},
                   {DType::kBF16, 16.0}, {DType::kQ4_K, 4.625}, {DType::kQ6_K, 6.625}};
  for (const auto& e : kExpected) {
    const StripLayout layout = strip_layout(tile_format(e.dtype), 2048);
    EXPECT_DOUBLE_EQ(static_cast<double>(layout.bytes) * 8 / (kStripRows * 2048), e.bits) << dtype_info(e.dtype).name;
  }
}

}  // namespace
}  // namespace quire::cpu
