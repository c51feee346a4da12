// The values that a target format can hold, for quantizers that decide code by code: a matrix being filled with codes of
// either of the two families of formats.
//
// Thread: fit() and the reading functions for different rows from different threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "formats/checkpoint_writer.h"
#include "tensor/block_grid.h"

namespace quire {

// How linears are quantized: as integer codes with a scale (and zero point) a group, or as blocks of a GGUF type.
struct GridSpec {
  const BlockGrid* blocks = nullptr;  // null: codes
  int bits = 4;
  int64_t group = 0;  // of codes: columns that share a scale; 0: the row
  bool symmetric = true;
};

// The grid of each linear of a model.
using GridChoice = std::function<GridSpec(const TensorRef&)>;

// What a linear became.
struct QuantizedRows {
  QuantizedMatrix codes;          // of codes, or
  std::vector<std::byte> blocks;  // [n][row_bytes]
};

class Grid {
 public:
  Grid(const GridSpec& spec, int64_t n, int64_t k);

  int64_t n() const { return n_; }
  int64_t k() const { return k_; }
  int64_t unit() const { return unit_; }    // columns whose scales are chosen together; divides k but for the last unit
  int64_t group() const { return group_; }  // columns that share one
  int levels() const { return levels_; }

  // Chooses the scales of one unit of a row from `count` values, its own or those that are to be stored there. `importance`
  // weighs their squared errors; null: the format's plain rule, the range of the values.
  void fit(int64_t row, int64_t unit, const float* values, const float* importance, int64_t count);
  const GroupParams& params(int64_t row, int64_t group) const {
    return params_[static_cast<size_t>(row * groups_ + group)];
  }
  float value_of(const GroupParams& params, uint8_t code) const {
    return params.scale * static_cast<float>(code) + params.offset;
  }

  // The result, given codes [n][k] in the order of columns that units were fitted in; `group_of` says the group of each
  // column of the model where that is another order, and then codes are in the model's.
  QuantizedRows finish(std::vector<uint8_t> codes, std::vector<int32_t> group_of);

 private:
  void fit_codes(int64_t row, int64_t group, const float* values, const float* importance, int64_t count);

  GridSpec spec_;
  int64_t n_;
  int64_t k_;
  int64_t unit_;
  int64_t group_;
  int64_t groups_;
  int levels_;
  std::vector<GroupParams> params_;  // [n][groups]
  QuantizedRows result_;
};

// The weights that a result stands for, [n][k].
void decode_rows(const GridSpec& spec, const QuantizedRows& rows, int64_t first, int64_t count, int64_t k, float* out);

}  // namespace quire
