#include <utility>

#include "options/option_rows.h"

namespace quire {

std::span<const OptionRow> option_table() {
  static const std::vector<OptionRow> kTable = [] {
    std::vector<OptionRow> table;
    for (auto* section : {&model_rows, &sampling_rows, &ending_rows, &batching_rows, &request_rows, &server_rows,
                          &server_limit_rows, &bench_rows, &eval_rows, &quantize_rows, &input_rows, &baseline_rows}) {
      for (OptionRow& row : section()) table.push_back(std::move(row));
    }
    return table;
  }();
  return kTable;
}

}  // namespace quire
