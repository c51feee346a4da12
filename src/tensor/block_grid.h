// What a quantizer chooses in blocks of a GGUF type: first the scales of a block, then its codes one by one, which need not
// be the nearest ones (GPTQ's are not). Types whose codes stand at even distances have a row in this table; the scalar code
// is in tensor/quant/, one type a file.
//
// Values and importance must be finite, importance not negative.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace quire {

// What the codes of a group stand for: scale * code + offset.
struct GroupParams {
  float scale = 0;
  float offset = 0;
};

struct BlockGrid {
  DType dtype;
  int group;   // weights that share scale and offset; blocks hold whole groups
  int levels;  // codes are 0..levels
  // Chooses the scales for a block's weights so that squared errors, times `importance`, are small; writes the block with
  // codes of 0.
  void (*fit)(const float* values, const float* importance, std::byte* block);
  // Reads the scales, as decoding multiplies with them: [block_elements / group].
  void (*params)(const std::byte* block, GroupParams* out);
  // Writes all codes of a block that fit() made.
  void (*put)(const uint8_t* codes, std::byte* block);
};

const BlockGrid* block_grid(DType dtype);  // null: codes of this type cannot be chosen

// The nearest code.
inline uint8_t nearest_code(const GroupParams& params, float inverse_scale, int levels, float value) {
  const float code = (value - params.offset) * inverse_scale + 0.5f;
  if (!(code > 0)) return 0;
  return code >= static_cast<float>(levels) ? static_cast<uint8_t>(levels) : static_cast<uint8_t>(code);
}
inline float inverse_of(float scale) {
  return scale >= 0x1p-126f || scale <= -0x1p-126f ? 1.0f / scale : 0.0f;  // a subnormal has no finite inverse
}

// What rounding n values to the nearest codes costs: squared errors times importance.
double rounding_error(const GroupParams& params, int levels, const float* values, const float* importance, int64_t n);

// Searches for the scale of codes in [-steps, steps - 1] that stand for scale * code: near the one whose code -steps is the
// largest value, the one of least weighted squared error. May be negative.
float search_scale(const float* values, const float* importance, int n, int steps);

// Searches for scale and offset of codes in [0, levels]. `offset_limit` true: the offset is at most 0.
GroupParams search_affine(const float* values, const float* importance, int n, int levels, bool offset_limit);

}  // namespace quire
