#include "engine/metrics.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

TEST(EngineMetrics, ReportsUnderBothNames) {
  EngineMetrics metrics("a-model");
  metrics.first_token(0.03);
  metrics.token_gap(0.02);
  metrics.step(9, 0.01);
  RequestTimings timings;
  timings.prompt_tokens = 7;
  timings.generated_tokens = 3;
  timings.ttft_ms = 30;
  timings.decode_ms = 40;
  metrics.request_ended(timings, "stop");
  metrics.request_ended({}, "cancelled");
  EngineGauges gauges;
  gauges.running = 2;
  gauges.preemptions = 4;
  gauges.kv_groups = {{.name = "global", .slots = 100, .used_slots = 50, .live_slots = 48}};
  metrics.set(gauges);
  metrics.set(gauges);
  const std::string text = metrics.text();
  for (const char* line :
       {"quire_time_to_first_token_seconds_bucket{model_name=\"a-model\",le=\"0.04\"} 1",
        "vllm:time_to_first_token_seconds_count{model_name=\"a-model\"} 1",
        "vllm:inter_token_latency_seconds_sum{model_name=\"a-model\"} 0.02",
        "vllm:request_success_total{finished_reason=\"stop\",model_name=\"a-model\"} 1",
        "quire_requests_total{model_name=\"a-model\",reason=\"cancelled\"} 1",
        "vllm:num_requests_running{model_name=\"a-model\"} 2", "vllm:num_preemptions_total{model_name=\"a-model\"} 4",
        "vllm:kv_cache_usage_perc{model_name=\"a-model\"} 0.5",
        "quire_kv_slots{group=\"global\",model_name=\"a-model\",state=\"wasted\"} 2",
        "vllm:request_time_per_output_token_seconds_sum{model_name=\"a-model\"} 0.02"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
}

}  // namespace
}  // namespace quire
