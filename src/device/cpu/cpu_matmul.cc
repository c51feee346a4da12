// f32 matrix products for work outside the forward pass (quantization): operands are packed for the tile kernel, a stretch
// of k at a time, then blocks of the result are dealt to workers.

#include <algorithm>

#include "device/cpu/cpu_device.h"

namespace quire::cpu {
namespace {

constexpr int64_t kStretch = 512;       // of k that is packed at a time
constexpr int64_t kBlockRows = 96;      // of a block of the result: its packed operands
constexpr int64_t kBlockColumns = 128;  // fit a core's L2 cache
static_assert(kBlockRows % kMatMulRows == 0 && kBlockColumns % kMatMulColumns == 0);

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// A stretch of an operand's k, and how the operand's rows are cut into panels.
struct Panels {
  const MatMulArgs::Operand& from;
  int64_t rows;   // of the operand
  int64_t width;  // of a panel
  int64_t k_first;
  int64_t k;
};

// The panel of rows [first, first + width), k ascending: out[k][width], rows behind the operand's last as 0.
void pack_panel(const Panels& panels, int64_t first, float* out) {
  const auto& [from, rows, width, k_first, k] = panels;
  const int64_t valid = std::min(width, rows - first);
  const float* base = from.data + first * from.row_stride + k_first * from.k_stride;
  if (valid < width) std::fill_n(out, k * width, 0.0f);
  if (from.row_stride == 1) {
    for (int64_t i = 0; i < k; ++i) std::copy_n(base + i * from.k_stride, valid, out + i * width);
    return;
  }
  for (int64_t row = 0; row < valid; ++row) {
    const float* in = base + row * from.row_stride;
    for (int64_t i = 0; i < k; ++i) out[i * width + row] = in[i * from.k_stride];
  }
}

}  // namespace

void CpuDevice::matmul(const MatMulArgs& args) {
  const int64_t a_panels = ceil_div(args.m, kMatMulRows);
  const int64_t b_panels = ceil_div(args.n, kMatMulColumns);
  const int64_t stretch = std::min(args.k, kStretch);
  const int64_t a_panel = stretch * kMatMulRows;
  const int64_t b_panel = stretch * kMatMulColumns;
  matmul_a_.resize(std::max(matmul_a_.size(), static_cast<size_t>(a_panels * a_panel)));
  matmul_b_.resize(std::max(matmul_b_.size(), static_cast<size_t>(b_panels * b_panel)));
  const int64_t row_blocks = ceil_div(args.m, kBlockRows);
  const int64_t column_blocks = ceil_div(args.n, kBlockColumns);

  const auto add_tile = [&](int64_t row, int64_t column, int64_t k) {
    alignas(64) float tile[kMatMulRows * kMatMulColumns];
    kernels_.matmul_tile(matmul_a_.data() + row / kMatMulRows * a_panel,
                         matmul_b_.data() + column / kMatMulColumns * b_panel, k, tile);
    const int64_t columns = std::min<int64_t>(kMatMulColumns, args.n - column);
    for (int64_t i = 0; i < std::min<int64_t>(kMatMulRows, args.m - row); ++i) {
      float* c = args.c + (row + i) * args.c_stride + column;
      for (int64_t j = 0; j < columns; ++j) c[j] += args.alpha * tile[i * kMatMulColumns + j];
    }
  };
  for (int64_t k_first = 0; k_first < args.k; k_first += kStretch) {
    const int64_t k = std::min(kStretch, args.k - k_first);
    const Panels a = {.from = args.a, .rows = args.m, .width = kMatMulRows, .k_first = k_first, .k = k};
    const Panels b = {.from = args.b, .rows = args.n, .width = kMatMulColumns, .k_first = k_first, .k = k};
    pool_.parallel_for(a_panels + b_panels, 8, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        if (i < a_panels) {
          pack_panel(a, i * kMatMulRows, matmul_a_.data() + i * a_panel);
        } else {
          pack_panel(b, (i - a_panels) * kMatMulColumns, matmul_b_.data() + (i - a_panels) * b_panel);
        }
      }
    });
    pool_.parallel_for(row_blocks * column_blocks, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t block = begin; block < end; ++block) {
        const int64_t first_row = block / column_blocks * kBlockRows;
        const int64_t first_column = block % column_blocks * kBlockColumns;
        const int64_t last_row = std::min(first_row + kBlockRows, args.m);
        const int64_t last_column = std::min(first_column + kBlockColumns, args.n);
        for (int64_t column = first_column; column < last_column; column += kMatMulColumns) {
          for (int64_t row = first_row; row < last_row; row += kMatMulRows) {
            if (!args.lower || column < row + kMatMulRows) add_tile(row, column, k);
          }
        }
      }
    });
  }
}

}  // namespace quire::cpu
