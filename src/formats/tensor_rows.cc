#include "formats/tensor_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/check.h"

namespace quire {
namespace {

constexpr int64_t kChunkBytes = int64_t{1} << 20;

// The canonical place of what is stored at `stored`: pairs (2i, 2i + 1) of a head are elements i and i + head_dim / 2.
int64_t canonical_index(int64_t stored, int64_t head_dim) {
  if (head_dim == 0) return stored;
  const int64_t in_head = stored % head_dim;
  return stored - in_head + in_head % 2 * (head_dim / 2) + in_head / 2;
}

// F16 ends at 65504; a larger weight would become an infinity without a word.
Status check_range(const StoredTensor& tensor, std::span<const float> values) {
  if (tensor.dtype != DType::kF16) return {};
  constexpr float kFirstTooLarge = 65520.0f;  // rounds to infinity
  const auto found = std::ranges::find_if(
      values, [](float value) { return std::isfinite(value) && std::fabs(value) >= kFirstTooLarge; });
  if (found == values.end()) return {};
  return out_of_range(tensor.where + " holds " + std::to_string(*found) +
                      ", more than F16 can; write such tensors as BF16 or F32");
}

Status wrong_size(const StoredTensor& tensor, size_t bytes) {
  return corrupt(tensor.where + " is given as " + std::to_string(bytes) + " bytes, which are not its " +
                 std::to_string(tensor.rows) + " x " + std::to_string(tensor.columns) + " elements");
}

}  // namespace

Status store_values(const StoredTensor& tensor, std::span<const float> values, const BytesSink& sink) {
  if (static_cast<int64_t>(values.size()) != tensor.rows * tensor.columns)
    return wrong_size(tensor, values.size_bytes());
  const DTypeInfo& info = dtype_info(tensor.dtype);
  if (info.encode == nullptr) {
    return unsupported(tensor.where + ": quire cannot write values as " + std::string(info.name));
  }
  const int64_t columns = tensor.columns;
  const int64_t stored_row = row_bytes(tensor.dtype, columns);
  const bool permuted_rows = tensor.interleaved_head_dim > 0 && tensor.rows > 1;
  const bool permuted_elements = tensor.interleaved_head_dim > 0 && tensor.rows == 1;
  const int64_t chunk_rows = std::clamp<int64_t>(kChunkBytes / (4 * columns), 1, tensor.rows);
  std::vector<float> chunk(static_cast<size_t>(chunk_rows * columns));
  std::vector<std::byte> bytes(static_cast<size_t>(chunk_rows * stored_row));
  for (int64_t first = 0; first < tensor.rows; first += chunk_rows) {
    const int64_t rows = std::min(chunk_rows, tensor.rows - first);
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t from = permuted_rows ? canonical_index(first + r, tensor.interleaved_head_dim) : first + r;
      const float* row = values.data() + from * columns;
      float* to = chunk.data() + r * columns;
      for (int64_t i = 0; i < columns; ++i) {
        to[i] = row[permuted_elements ? canonical_index(i, tensor.interleaved_head_dim) : i];
      }
    }
    const auto count = static_cast<size_t>(rows * columns);
    if (tensor.less_one) std::for_each_n(chunk.begin(), count, [](float& value) { value -= 1.0f; });
    QUIRE_RETURN_IF_ERROR(check_range(tensor, {chunk.data(), count}));
    info.encode(chunk.data(), rows * (columns / info.block_elements), bytes.data());
    QUIRE_RETURN_IF_ERROR(
        sink(static_cast<uint64_t>(first * stored_row), {bytes.data(), static_cast<size_t>(rows * stored_row)}));
  }
  return {};
}

Status store_blocks(const StoredTensor& tensor, std::span<const std::byte> blocks, const BytesSink& sink) {
  QUIRE_CHECK(!tensor.less_one);
  if (static_cast<int64_t>(blocks.size()) != tensor.bytes()) return wrong_size(tensor, blocks.size());
  if (tensor.interleaved_head_dim == 0) return sink(0, blocks);
  const int64_t stored_row = row_bytes(tensor.dtype, tensor.columns);
  std::vector<std::byte> head(static_cast<size_t>(tensor.interleaved_head_dim * stored_row));
  for (int64_t first = 0; first < tensor.rows; first += tensor.interleaved_head_dim) {
    for (int64_t r = 0; r < tensor.interleaved_head_dim; ++r) {
      const int64_t from = canonical_index(first + r, tensor.interleaved_head_dim);
      std::memcpy(head.data() + r * stored_row, blocks.data() + from * stored_row, static_cast<size_t>(stored_row));
    }
    QUIRE_RETURN_IF_ERROR(sink(static_cast<uint64_t>(first * stored_row), head));
  }
  return {};
}

}  // namespace quire
