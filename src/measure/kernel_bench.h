// How fast the linear kernels run on the matrices of a model, streamed from memory as a step streams them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "capacity/model_options.h"

namespace quire {

// All matrices of one type and shape, multiplied with `rows` rows of activations one after the other.
struct KernelSpeed {
  std::string dtype;
  int64_t n = 0;
  int64_t k = 0;
  int64_t matrices = 0;
  int64_t rows = 0;
  double seconds = 0;        // for one matrix, median
  double weight_gbps = 0;    // packed bytes read
  double gops = 0;           // 2 n k rows a second, 10^9
  double cost_over_one = 0;  // times the seconds of one row
  double error = 0;          // what rounding the activations does: RMS of the change over RMS of the products
};

// `rows`: the row counts to measure, ascending from 1. `on_speed` hears each figure as it is known.
Status bench_kernels(const ModelOptions& options, std::span<const int64_t> rows,
                     const std::function<void(const KernelSpeed&)>& on_speed);

}  // namespace quire
