// The rows of the option table (options.h), a file for each section: a new option is one member of Options and one row.
#pragma once

#include <vector>

#include "options/options.h"

namespace quire {

// Commands that share options.
inline constexpr uint32_t kHasContext = kRun | kInspect | kTokenize | kTemplate | kScore | kServe | kBench;
inline constexpr uint32_t kWithModel = kHasContext | kEval | kDoctor;
inline constexpr uint32_t kComputes = kRun | kScore | kServe | kBench | kEval;
inline constexpr uint32_t kGenerates = kRun | kServe;

std::vector<OptionRow> model_rows();
std::vector<OptionRow> baseline_rows();
std::vector<OptionRow> sampling_rows();
std::vector<OptionRow> ending_rows();
std::vector<OptionRow> batching_rows();
std::vector<OptionRow> request_rows();
std::vector<OptionRow> server_rows();
std::vector<OptionRow> server_limit_rows();
std::vector<OptionRow> bench_rows();
std::vector<OptionRow> eval_rows();
std::vector<OptionRow> quantize_rows();
std::vector<OptionRow> input_rows();

}  // namespace quire
