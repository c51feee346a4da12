// What the engine counts and times, in Prometheus' text format: under quire_ names, and under vLLM's with its buckets,
// so that dashboards made for it work.
//
// Definitions are those of vLLM: queue = submit to first scheduled, prefill = first scheduled to first token, TTFT =
// submit to first token, decode = first token to last, ITL = gap between deliveries of one choice (k tokens in one step
// are one gap), TPOT = (E2E - TTFT) / (tokens - 1) per request. One monotonic clock, the engine's.
//
// Thread: any.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/event.h"

namespace quire {

// The state of queue and cache after a step.
struct EngineGauges {
  int64_t running = 0;
  int64_t waiting = 0;
  struct KvGroup {
    std::string name;
    int64_t slots = 0;       // token slots of the pool
    int64_t used_slots = 0;  // in pages that some sequence holds
    int64_t live_slots = 0;  // of these, slots with a committed token
  };
  std::vector<KvGroup> kv_groups;
  int64_t prefix_query_tokens = 0;  // since start, as are the rest
  int64_t prefix_hit_tokens = 0;
  int64_t preemptions = 0;
  int64_t recomputed_tokens = 0;
  int64_t evictions = 0;
  int64_t wasted_rows = 0;
  double step_time_error = 0;  // mean |predicted - measured| / measured
};

class EngineMetrics {
 public:
  explicit EngineMetrics(const std::string& model_name);
  ~EngineMetrics();
  EngineMetrics(const EngineMetrics&) = delete;
  EngineMetrics& operator=(const EngineMetrics&) = delete;

  void step(int64_t rows, double seconds);
  void token_gap(double seconds);
  void first_token(double seconds);
  // `reason` is a finish reason, or why the request failed: "cancelled", "deadline_exceeded", "error".
  void request_ended(const RequestTimings& timings, std::string_view reason);
  void request_refused(std::string_view reason);
  void set(const EngineGauges& gauges);
  void threads(int active, int64_t retreats);

  std::string text() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace quire
