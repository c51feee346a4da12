// How the weights of a linear are stored, for whoever packs and multiplies them: in blocks of a DType, or, in quantized
// Hugging Face checkpoints, as codes with scales in tensors of their own. A DType converts to the WeightType it is.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tensor/dtype.h"

namespace quire {

enum class CodeKind : uint8_t {
  kNone,  // blocks of `dtype`
  kInt4,  // w = scale * (code - zero), code and zero in 0..15
  kInt8,  // the same in 0..255
  kFp8,   // w = scale * e4m3(code); OCP's E4M3 with no infinity
};

inline constexpr int32_t kWholeRow = 1 << 30;  // as a group: one scale a row

struct WeightType {
  WeightType() = default;
  WeightType(DType element) : dtype(element) {}  // NOLINT: implicit, a DType is a WeightType

  DType dtype = DType::kF32;  // of the blocks; with codes, of their scales: F16, BF16 or F32
  CodeKind codes = CodeKind::kNone;
  bool zeros = false;        // a zero point a row and group; without it 8 of kInt4 and 128 of kInt8
  int32_t group = 0;         // columns that share a scale: 32 times a power of two, or kWholeRow
  bool token_scale = false;  // inputs are to be rounded to int8 with one scale a row of activations
  bool ordered = false;      // the columns are stored in an order of their own

  friend auto operator<=>(const WeightType&, const WeightType&) = default;
};

std::string weight_type_name(const WeightType& type);  // "Q4_K", "int4/128 F16"; zero points: "int4/128z F16"

// Where codes of some rows go, and with them what they need: `codes` [rows][code_stride], `scales` and `zeros`
// [rows][groups]. Columns come in the stored order; zeros are written where the type has them.
struct CodeRows {
  uint8_t* codes = nullptr;
  int64_t code_stride = 0;
  float* scales = nullptr;
  uint8_t* zeros = nullptr;
  int64_t groups = 0;
};

inline int64_t code_groups(const WeightType& type, int64_t k) { return (k + type.group - 1) / type.group; }

// Reads rows [first, first + rows).
using CodeReader = std::function<void(int64_t first, int64_t rows, const CodeRows& out)>;

// The value of an E4M3 byte: sign, 4 bits of exponent with bias 7, 3 of mantissa. 0x7f and 0xff are NaN.
float e4m3_to_f32(uint8_t code);

}  // namespace quire
