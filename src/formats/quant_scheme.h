// How one linear of a quantized Hugging Face checkpoint is stored: what its configuration says, before its tensors are
// looked at (formats/quantized_linear.h).
#pragma once

#include <cstdint>
#include <string>

namespace quire {

struct QuantScheme {
  enum class Layout : uint8_t {
    kGptq,    // qweight along K, qzeros, scales, g_idx
    kAwq,     // qweight along N with interleaved nibbles, qzeros, scales
    kPacked,  // compressed-tensors: weight_packed, weight_scale, weight_shape, weight_zero_point, weight_g_idx
    kInt8,    // weight of int8, weight_scale, weight_zero_point
    kFp8,     // weight of e4m3, weight_scale or weight_scale_inv
  };

  Layout layout = Layout::kGptq;
  std::string method = {};  // for people: "GPTQ"
  int bits = 0;
  int64_t group = 0;       // columns that share a scale; 0: the row
  int64_t block_rows = 0;  // rows that do, of kFp8 in blocks; 0: no blocks
  bool symmetric = true;
  bool zeros_less_one = false;  // GPTQ's first version stores zero points less one
  bool token_scale = false;     // inputs are rounded to int8, one scale a token
};

}  // namespace quire
