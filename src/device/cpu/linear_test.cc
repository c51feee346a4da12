// The kernels of each instruction set against the scalar reference, and that against a plain product in double.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "device/cpu/linear_input.h"
#include "device/cpu/pack.h"
#include "device/memory.h"

namespace quire::cpu {
namespace {

constexpr int64_t kN = 16;

// Floats, bf16 or f16 as the format has them: moderate, some of 16 bits 0.
void fill_values(const TileFormat& format, uint8_t* to, int64_t bytes, std::mt19937_64& random) {
  if (format.scale == Scale::kF32 || format.quants == Quants::kF32) {
    const float spread = format.scaled() ? 0.01f : 1.0f;
    for (int64_t i = 0; i < bytes / 4; ++i) {
      const float value = spread * std::normal_distribution<float>()(random);
      std::memcpy(to + 4 * i, &value, 4);
    }
    return;
  }
  const bool bf16 = format.scale == Scale::kBF16 || format.quants == Quants::kBF16;
  for (int64_t i = 0; i < bytes / 2; ++i) {
    const uint64_t sign = random() & 0x8000;
    const uint64_t magnitude = random() % 16 == 0 ? 0 : bf16 ? 0x3c00 | (random() & 0x7f) : 0x2000 | (random() & 0x3ff);
    const auto value = static_cast<uint16_t>(sign | magnitude);
    std::memcpy(to + 2 * i, &value, 2);
  }
}

// A strip with random quants and moderate scales, some of them zero.
struct TestStrip {
  TestStrip(const TileFormat& format, int64_t k, std::mt19937_64& random) : k_padded(strip_layout(format, k).k_padded) {
    matrix.format = format;
    matrix.layout = strip_layout(format, k);
    matrix.n = kN;
    matrix.k = k;
    memory = std::move(*Buffer::allocate(matrix.layout.bytes, "a test"));
    auto* bytes = reinterpret_cast<uint8_t*>(memory.data());
    for (int64_t i = 0; i < matrix.layout.bytes; ++i) bytes[i] = static_cast<uint8_t>(random());
    const StripLayout& layout = matrix.layout;
    if (!format.scaled()) fill_values(format, bytes, layout.bytes, random);
    for (int64_t first = 0; format.scaled() && first < k_padded; first += layout.block_k) {
      uint8_t* block = bytes + layout.block_at(first / layout.block_k);
      if (!format.super()) fill_values(format, block, format.zeros ? layout.mins : layout.quants, random);
      if (format.super() && first % kSuperK == 0) fill_values(format, block - kLineBytes, kLineBytes, random);
      if (format.quants != Quants::kE4M3) continue;
      const int64_t quants = std::min(layout.block_k, k_padded - first) / kActGroup * layout.group_bytes;
      for (uint8_t* quant = block + layout.quants; quant < block + layout.quants + quants; ++quant) {
        if ((*quant & 0x7f) == 0x7f) *quant ^= 1;  // NaN
        *quant &= 0xbf;                            // at most 1.875, or sums are too large to compare
      }
    }
    matrix.data = memory.data();
    const auto* base = reinterpret_cast<const uint8_t*>(memory.data());
    view = {.super = base,
            .scales = base + layout.block_at(0),
            .mins = base + layout.block_at(0) + layout.mins,
            .quants = base + layout.quants_at(0),
            .k_padded = k_padded,
            .block_k = layout.block_k,
            .block_bytes = layout.block_bytes,
            .super_bytes = layout.super_bytes,
            .group_shift = 0,
            .prefetch = 0};
    for (int32_t group = format.group; group > 32; group /= 2) ++view.group_shift;
  }

  int64_t k_padded;
  PackedMatrix matrix;
  Buffer memory;
  StripView view;
};

struct TestRows {
  TestRows(int64_t rows, int64_t k, std::mt19937_64& random, bool power_of_two = false)
      : memory(std::move(*Buffer::allocate(int64_t{1} << 20, "a test"))),
        arena(memory.data()),
        activations({.max_rows = rows, .k = k, .readers = {}},
                    {.i8 = true, .bf16 = true, .f32 = true, .power_of_two = power_of_two}, {}, arena),
        values(static_cast<size_t>(rows * k)) {
    activations.set_rows(rows);
    for (float& value : values) value = std::normal_distribution<float>()(random);
    for (int64_t row = 0; row < rows; ++row) activations.store(scalar_kernels(), row, values.data() + row * k, 0, k);
  }

  Buffer memory;
  Arena arena;
  CpuLinearInput activations;
  std::vector<float> values;
};

std::vector<TileFormat> formats() {
  std::vector<TileFormat> all;
  for (const DTypeInfo& info : all_dtypes()) all.push_back(tile_format(info.dtype));
  // Groups wider than the activations', as GPTQ and AWQ checkpoints have them, and bf16 scales.
  for (const int32_t group : {64, 128, 1024})
    all.push_back({.quants = Quants::kI4, .scale = Scale::kF16, .zero = 8, .group = group});
  all.push_back({.quants = Quants::kI4, .scale = Scale::kBF16, .zero = 8, .group = 128});
  all.push_back({.quants = Quants::kI8, .scale = Scale::kBF16, .zero = 128, .group = 1024});
  // The codes of quantized checkpoints, with every type of scale.
  for (const CodeKind codes : {CodeKind::kInt4, CodeKind::kInt8, CodeKind::kFp8}) {
    for (const DType scale : {DType::kF16, DType::kBF16, DType::kF32}) {
      for (const bool zeros : {false, true}) {
        for (const int32_t group : {32, 128, kWholeRow}) {
          if (zeros && codes == CodeKind::kFp8) continue;
          WeightType type(scale);
          type.codes = codes;
          type.zeros = zeros;
          type.group = group;
          all.push_back(tile_format(type));
        }
      }
    }
  }
  return all;
}

TEST(Linear, ScalarMatchesAPlainProduct) {
  std::mt19937_64 random(3);
  for (const TileFormat& format : formats()) {
    const int64_t k = format.super() ? 512 : 1024;
    const TestStrip strip(format, k, random);
    TestRows rows(3, k, random);
    float got[3 * kN];
    scalar_kernels().linear(format, ActKind::kF32)(format, strip.view, rows.activations.panel(0), got, kN);
    std::vector<float> weights(static_cast<size_t>(k));
    for (int64_t lane = 0; lane < kN; ++lane) {
      decode_strip_row(strip.matrix, strip.matrix.strip(0), lane, 0, k, weights.data());
      for (int64_t m = 0; m < 3; ++m) {
        double want = 0;
        double size = 0;
        for (int64_t i = 0; i < k; ++i) {
          const double term =
              static_cast<double>(weights[static_cast<size_t>(i)]) * rows.values[static_cast<size_t>(m * k + i)];
          want += term;
          size += std::abs(term);
        }
        EXPECT_NEAR(got[m * kN + lane], want, 1e-5 * size);
      }
    }
  }
}

TEST(Linear, Int8ActivationsStayNearTheExactProduct) {
  std::mt19937_64 random(4);
  for (const TileFormat& format : formats()) {
    if (!format.integer()) continue;
    const TestStrip strip(format, 512, random);
    TestRows rows(2, 512, random);
    float exact[2 * kN];
    float got[2 * kN];
    scalar_kernels().linear(format, ActKind::kF32)(format, strip.view, rows.activations.panel(0), exact, kN);
    scalar_kernels().linear(format, ActKind::kI8)(format, strip.view, rows.activations.panel(0), got, kN);
    double error = 0;
    double size = 0;
    for (int i = 0; i < 2 * kN; ++i) {
      error += (got[i] - exact[i]) * (got[i] - exact[i]);
      size += exact[i] * exact[i];
    }
    EXPECT_LT(std::sqrt(error / size), 0.05);
  }
}

// Every format, kind of activations and number of rows of a panel against the scalar kernels.
void check_against_scalar(const Kernels* fast, bool power_of_two) {
  if (fast == nullptr) GTEST_SKIP() << "this CPU lacks the instruction set";
  std::mt19937_64 random(5);
  for (const TileFormat& format : formats()) {
    for (const int64_t k : {int64_t{256}, int64_t{format.super() ? 1024 : 1120}}) {
      for (const int64_t rows : {1, 2, 3, 4, 6, 8, 12}) {
        const TestStrip strip(format, k, random);
        TestRows input(rows, k, random, power_of_two);
        for (const ActKind kind : {ActKind::kI8, ActKind::kBF16, ActKind::kF32}) {
          const LinearFn reference = scalar_kernels().linear(format, kind);
          const LinearFn kernel = fast->linear(format, kind);
          if (kind == ActKind::kI8
                  ? !format.integer()
                  : (kind == ActKind::kBF16 && format.quants != Quants::kBF16 && format.quants != Quants::kE4M3))
            continue;
          ASSERT_NE(kernel, nullptr);
          std::vector<float> want(static_cast<size_t>(rows * kN));
          std::vector<float> got(static_cast<size_t>(rows * kN), NAN);
          reference(format, strip.view, input.activations.panel(0), want.data(), kN);
          kernel(format, strip.view, input.activations.panel(0), got.data(), kN);
          for (size_t i = 0; i < want.size(); ++i) {
            // Integer products have one order of operations on every CPU; float ones differ in fusing and pairing.
            if (kind == ActKind::kI8) {
              ASSERT_EQ(got[i], want[i]) << "quants " << static_cast<int>(format.quants) << " rows " << rows;
            } else {
              ASSERT_NEAR(got[i], want[i], 2e-3 * (1 + std::abs(want[i])))
                  << "quants " << static_cast<int>(format.quants) << " rows " << rows;
            }
          }
        }
      }
    }
  }
}

TEST(Linear, Avx2MatchesScalar) { check_against_scalar(avx2_kernels(), false); }
TEST(Linear, AvxVnniMatchesScalar) { check_against_scalar(avxvnni_kernels(), false); }
TEST(Linear, Avx512MatchesScalar) { check_against_scalar(avx512_kernels(), false); }
TEST(Linear, Avx512MatchesScalarWithPowerOfTwoScales) { check_against_scalar(avx512_kernels(), true); }

// Where bf16 is widened to f32, products are exact and fusing the addition changes nothing.
TEST(Linear, Avx2MultipliesBf16LikeScalar) {
  if (avx2_kernels() == nullptr) GTEST_SKIP() << "this CPU lacks the instruction set";
  std::mt19937_64 random(7);
  const TileFormat format = tile_format(DType::kBF16);
  const TestStrip strip(format, 448, random);
  for (const int64_t rows : {1, 2, 3, 4, 6, 8, 12}) {
    TestRows input(rows, 448, random);
    std::vector<float> want(static_cast<size_t>(rows * kN));
    std::vector<float> got(want.size(), NAN);
    scalar_kernels().linear(format, ActKind::kBF16)(format, strip.view, input.activations.panel(0), want.data(), kN);
    avx2_kernels()->linear(format, ActKind::kBF16)(format, strip.view, input.activations.panel(0), got.data(), kN);
    EXPECT_EQ(got, want) << rows << " rows";
  }
}

// Every code that is a number, alone against an activation of 1: kernels convert it exactly, the subnormals too.
TEST(Linear, ConvertsEveryE4M3CodeExactly) {
  std::mt19937_64 random(8);
  WeightType type(DType::kF32);
  type.codes = CodeKind::kFp8;
  type.group = kWholeRow;
  const TileFormat format = tile_format(type);
  const int64_t k = 256;
  const auto code_of = [](int64_t lane, int64_t i) {
    const auto code = static_cast<uint8_t>(i + 16 * lane);
    return static_cast<uint8_t>((code & 0x7f) == 0x7f ? 0 : code);
  };
  TestStrip strip(format, k, random);
  StripPacker packer(type, k);
  packer.pack(
      [&](int64_t, int64_t rows, const CodeRows& out) {
        for (int64_t r = 0; r < rows; ++r) {
          for (int64_t i = 0; i < k; ++i) out.codes[r * out.code_stride + i] = code_of(r, i);
          out.scales[r] = 1;
        }
      },
      0, kN, strip.memory.data());
  for (const Kernels* kernels : {&scalar_kernels(), avx2_kernels(), avx512_kernels()}) {
    if (kernels == nullptr) continue;
    for (const ActKind kind : {ActKind::kBF16, ActKind::kF32}) {
      for (int64_t i = 0; i < k; ++i) {
        TestRows input(1, k, random);
        std::vector<float> one(static_cast<size_t>(k));
        one[static_cast<size_t>(i)] = 1;
        input.activations.store(scalar_kernels(), 0, one.data(), 0, k);
        float got[kN];
        kernels->linear(format, kind)(format, strip.view, input.activations.panel(0), got, kN);
        for (int64_t lane = 0; lane < kN; ++lane) {
          ASSERT_EQ(got[lane], e4m3_to_f32(code_of(lane, i))) << kernels->name << " code " << int{code_of(lane, i)};
        }
      }
    }
  }
}

// The largest quants and activations of either sign: 16-bit sums are at their limits.
TEST(Linear, ExtremesDoNotSaturate) {
  std::mt19937_64 random(6);
  for (const TileFormat& format : formats()) {
    if (!format.integer()) continue;
    const int64_t k = 512;
    TestStrip strip(format, k, random);
    for (const int quants : {0x00, 0xff}) {
      auto* bytes = reinterpret_cast<uint8_t*>(strip.memory.data());
      const StripLayout& layout = strip.matrix.layout;
      for (int64_t at = 0; at < layout.k_padded; at += kActGroup)
        std::memset(bytes + layout.quants_at(at), quants, static_cast<size_t>(layout.group_bytes));
      for (const int64_t rows : {4, 12}) {
        TestRows input(rows, k, random);
        for (int64_t row = 0; row < rows; ++row) {
          std::vector<float> values(static_cast<size_t>(k), row % 2 == 0 ? 1.0f : -1.0f);
          input.activations.store(scalar_kernels(), row, values.data(), 0, k);
        }
        const Panel panel = input.activations.panel(0);
        std::vector<float> want(static_cast<size_t>(rows * kN));
        scalar_kernels().linear(format, ActKind::kI8)(format, strip.view, panel, want.data(), kN);
        for (const Kernels* fast : {avx2_kernels(), avxvnni_kernels(), avx512_kernels()}) {
          if (fast == nullptr) continue;
          std::vector<float> got(want.size(), NAN);
          fast->linear(format, ActKind::kI8)(format, strip.view, panel, got.data(), kN);
          EXPECT_EQ(got, want) << fast->name << " quants " << static_cast<int>(format.quants);
        }
      }
    }
  }
}

TEST(LinearInput, PanelsHoldOnlySizesWithKernels) {
  for (int64_t rows = 0; rows < 600; ++rows) {
    int64_t sum = 0;
    for (const int32_t panel : split_panels(rows)) {
      EXPECT_TRUE(panel == 1 || panel == 2 || panel == 3 || panel == 4 || panel == 6 || panel == 8 || panel == 12);
      sum += panel;
    }
    EXPECT_EQ(sum, rows);
  }
}

}  // namespace
}  // namespace quire::cpu
