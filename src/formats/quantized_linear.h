// A linear of a quantized Hugging Face checkpoint: the tensors it consists of, checked against each other and against
// its scheme, and read as integer codes, scales and zero points. Layouts and their sources: docs/quantization.md.
//
// Thread: immutable, readable from any thread. The tensors stay in the mapped files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "formats/quant_scheme.h"
#include "formats/safetensors_file.h"
#include "tensor/weight_type.h"

namespace quire {

// The tensors of one module by the last part of their names: "qweight", "scales", ...
using QuantizedParts = std::map<std::string, const SafetensorsEntry*, std::less<>>;

// Whether a tensor called `module.part` of this element type belongs to a quantized module.
bool is_quantized_part(std::string_view part, std::string_view dtype);

class QuantizedLinear {
 public:
  // `where` names file and module. Reads scales, zero points and the order of columns to check them.
  static Result<std::shared_ptr<const QuantizedLinear>> create(const QuantScheme& scheme, const QuantizedParts& parts,
                                                               const std::string& where);

  int64_t rows() const { return n_; }
  int64_t columns() const { return k_; }
  int64_t bytes() const { return bytes_; }  // of all tensors
  const WeightType& type() const { return type_; }
  // "GPTQ 4-bit, groups of 128, symmetric". With `type`, tells apart whatever is packed differently from the same tensors.
  std::string name() const;

  // The column of the model that each stored column belongs to; empty: its own.
  std::span<const int32_t> order() const { return order_; }
  // Rows in the stored order of columns, as `type` has them.
  void read(int64_t first, int64_t rows, const CodeRows& out) const;
  // One row in the model's order: scale * (code - zero), rounded once.
  void decode_f32(int64_t row, float* out) const;

 private:
  friend class QuantizedLinearBuilder;

  void read_codes(int64_t first, int64_t rows, uint8_t* out, int64_t stride) const;  // the model's order
  float scale_at(int64_t row, int64_t group) const;
  int zero_at(int64_t row, int64_t group) const;  // as stored codes count
  int64_t stored_groups() const;

  QuantScheme scheme_;
  WeightType type_;
  int64_t n_ = 0;
  int64_t k_ = 0;
  int64_t bytes_ = 0;
  int64_t group_ = 0;    // columns a stored scale; k where it is the row
  int code_offset_ = 0;  // added to a stored code so that a symmetric one has the zero that its type wants
  const std::byte* codes_ = nullptr;
  const std::byte* scales_ = nullptr;
  const std::byte* zeros_ = nullptr;  // null: every zero is 2^(bits - 1)
  // A scale's index: row / scale_rows_ * row_step_ + group * group_step_.
  int64_t scale_rows_ = 1;
  int64_t row_step_ = 0;
  int64_t group_step_ = 0;
  std::vector<int32_t> order_;
  std::vector<int32_t> group_ids_;  // stored group of each group of group_ columns; empty: its own
};

}  // namespace quire
