#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/machine.h"
#include "base/thread_pool.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/json_object.h"
#include "cli/model_source.h"
#include "cli/terminal.h"
#include "measure/kernel_bench.h"
#include "measure/model_bench.h"
#include "measure/roof.h"

namespace quire {
namespace {

constexpr int kProbes = 20;

std::string fixed(double value, int digits) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.*f", digits, value);
  return buffer;
}

std::string percent(double part, double whole) { return whole > 0 ? fixed(100 * part / whole, 0) + " %" : ""; }

int thread_count(const Options& options) {
  return options.threads > 0 ? static_cast<int>(options.threads) : usable_cores();
}

struct Spread {
  double median = 0;
  double low = 0;
  double high = 0;
};

Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {values[values.size() / 2], values.front(), values.back()};
}

Status bench_roof(const Options& options) {
  ThreadPool pool(thread_count(options));
  const ComputeRoof roof = measure_compute_roof(pool);
  QUIRE_ASSIGN_OR_RETURN(BandwidthProbe probe, BandwidthProbe::create(pool));
  std::vector<double> rates;
  for (int i = 0; i < kProbes; ++i) rates.push_back(probe.measure());
  const Spread memory = spread_of(rates);
  if (options.json) {
    JsonObject object;
    object.number("threads", pool.size())
        .real("int8_gops", roof.int8_gops)
        .real("bf16_gflops", roof.bf16_gflops)
        .real("fp32_gflops", roof.fp32_gflops)
        .real("memory_gbps", memory.median)
        .real("memory_gbps_low", memory.low)
        .real("memory_gbps_high", memory.high);
    std::printf("%s\n", object.pretty().c_str());
    return {};
  }
  const auto rate = [](double value) { return value > 0 ? fixed(value, 0) : std::string("no instruction"); };
  const std::vector<std::vector<std::string>> rows = {
      {counted(pool.size(), "thread"), "10^9 a second"},
      {"int8 operations", rate(roof.int8_gops)},
      {"bf16 operations", rate(roof.bf16_gflops)},
      {"fp32 operations", rate(roof.fp32_gflops)},
      {"bytes of memory read",
       fixed(memory.median, 1) + " (" + fixed(memory.low, 1) + " to " + fixed(memory.high, 1) + ")"}};
  std::fputs(table_text(rows, "").c_str(), stdout);
  return {};
}

Status bench_kernel(const Options& options) {
  QUIRE_ASSIGN_OR_RETURN(const std::string path, find_model(options));
  std::vector<int64_t> rows = options.rows;
  if (rows.empty()) rows = {1, 2, 4, 8, 12, 32, 512};
  rows.push_back(1);  // what the others' cost is compared with
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  ThreadPool pool(thread_count(options));
  const ComputeRoof roof = measure_compute_roof(pool);
  if (!options.json) {
    std::printf("%-18s %7s %7s %9s %5s %10s %9s %7s %9s %9s %7s\n", "type", "n", "k", "matrices", "rows", "us", "GB/s",
                "GOP/s", "of int8", "of 1 row", "error");
  }
  return bench_kernels(model_options(options, path), rows, [&](const KernelSpeed& s) {
    if (options.json) {
      JsonObject object;
      object.text("type", s.dtype)
          .number("n", s.n)
          .number("k", s.k)
          .number("matrices", s.matrices)
          .number("rows", s.rows)
          .real("us", 1e6 * s.seconds)
          .real("weight_gbps", s.weight_gbps)
          .real("gops", s.gops)
          .real("cost_over_one_row", s.cost_over_one)
          .real("error", s.error);
      std::printf("%s\n", object.line().c_str());
    } else {
      std::printf("%-18s %7lld %7lld %9lld %5lld %10.1f %9.1f %7.0f %9s %9.2f %6.2f%%\n", s.dtype.c_str(),
                  static_cast<long long>(s.n), static_cast<long long>(s.k), static_cast<long long>(s.matrices),
                  static_cast<long long>(s.rows), 1e6 * s.seconds, s.weight_gbps, s.gops,
                  percent(s.gops, roof.int8_gops).c_str(), s.cost_over_one, 100 * s.error);
    }
    std::fflush(stdout);
  });
}

Status bench_whole_model(const Options& options) {
  QUIRE_ASSIGN_OR_RETURN(const std::string path, find_model(options));
  using Kind = ModelWork::Kind;
  std::vector<ModelWork> works = {{.kind = Kind::kPrefill, .tokens = options.prefill}};
  std::vector<int64_t> batches = options.rows;
  if (batches.empty()) batches = {1, 2, 4, 8, 16, 32};
  for (const int64_t batch : batches) {
    works.push_back({.kind = Kind::kDecode, .tokens = options.decode, .depth = options.depth, .sequences = batch});
  }
  ThreadPool pool(thread_count(options));
  const ComputeRoof roof = measure_compute_roof(pool);
  if (!options.json) {
    std::printf("%-22s %25s %8s %8s %9s %12s %12s\n", "", "tok/s, median (range)", "ms/step", "of int8", "GB/s",
                "of the probe", "KV MB/token");
  }
  return bench_model(model_options(options, path), works, static_cast<int>(options.repeats), [&](const ModelSpeed& s) {
    const Spread speed = spread_of(s.tokens_per_s);
    const bool decode = s.work.kind == Kind::kDecode;
    if (options.json) {
      JsonObject object;
      object.text("work", work_name(s.work))
          .real("tokens_per_s", speed.median)
          .real("low", speed.low)
          .real("high", speed.high)
          .real("kv_bytes_per_token", s.kv_bytes)
          .real("gops", s.gops)
          .real("of_int8_roof", roof.int8_gops > 0 ? s.gops / roof.int8_gops : 0);
      if (decode) object.real("read_gbps", s.read_gbps).real("probe_gbps", s.probe_gbps);
      std::printf("%s\n", object.line().c_str());
    } else {
      const std::string range = fixed(speed.median, 1) + " (" + fixed(speed.low, 1) + "-" + fixed(speed.high, 1) + ")";
      std::printf("%-22s %25s %8s %8s %9s %12s %12s\n", work_name(s.work).c_str(), range.c_str(),
                  decode ? fixed(1e3 * static_cast<double>(s.work.sequences) / speed.median, 2).c_str() : "",
                  percent(s.gops, roof.int8_gops).c_str(), decode ? fixed(s.read_gbps, 1).c_str() : "",
                  decode ? percent(s.read_gbps, s.probe_gbps).c_str() : "", fixed(s.kv_bytes / 1e6, 2).c_str());
    }
    std::fflush(stdout);
  });
}

}  // namespace

Status command_bench(const Invocation& invocation) {
  const std::string what = invocation.text.value_or("model");
  if (what == "roof") return bench_roof(invocation.options);
  if (what == "kernel") return bench_kernel(invocation.options);
  if (what == "model") return bench_whole_model(invocation.options);
  return invalid_argument("quire bench measures roof, kernel or model, not \"" + what + "\"");
}

}  // namespace quire
