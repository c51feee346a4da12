// Rows of a tensor on their way into a file: from the canonical order to the order the format stores, and from floats to
// the type's bytes. The inverse of TensorRef::row and TensorRef::decode_f32 (formats/checkpoint.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/status.h"
#include "tensor/dtype.h"

namespace quire {

struct StoredTensor {
  std::string where;  // names file and tensor in messages
  DType dtype = DType::kF32;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t interleaved_head_dim = 0;  // > 0: rows of each head, or a vector's elements, are stored as rope pairs
  bool less_one = false;             // w of (1 + w) is stored

  int64_t bytes() const { return rows * row_bytes(dtype, columns); }
};

// Takes bytes of the tensor from `offset` on.
using BytesSink = std::function<Status(uint64_t offset, std::span<const std::byte> bytes)>;

// `values` [rows][columns], canonical. Fails where the type has no encoder or cannot hold a value.
Status store_values(const StoredTensor& tensor, std::span<const float> values, const BytesSink& sink);

// `blocks`: the rows of a matrix in its type, canonical.
Status store_blocks(const StoredTensor& tensor, std::span<const std::byte> blocks, const BytesSink& sink);

}  // namespace quire
