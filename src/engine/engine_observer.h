// Hears what the engine's core does, as it does it: metrics and timelines are made from this. The base hears nothing.
//
// Thread: the core's. Must not call back into the core.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/engine.h"
#include "engine/event.h"
#include "engine/metrics.h"
#include "engine/request.h"
#include "engine/timeline.h"

namespace quire {

class EngineObserver {
 public:
  virtual ~EngineObserver() = default;

  virtual void request_queued(const Request& /*request*/, int64_t /*now_ns*/) {}
  virtual void request_event(std::string_view /*id*/, const TraceEvent& /*event*/) {}
  // `reason` is a finish reason, or why the request failed: "cancelled", "deadline_exceeded", "error".
  virtual void request_ended(const RequestTimings& /*timings*/, std::string_view /*reason*/) {}
  virtual void first_token(double /*seconds*/) {}
  virtual void token_gap(double /*seconds*/) {}
  virtual void step_began(int64_t /*rows*/, int64_t /*sequences*/, int64_t /*now_ns*/) {}
  virtual void step_done(int64_t /*rows*/, double /*seconds*/) {}
  virtual void step_failed() {}
  virtual void gauges_changed(const EngineGauges& /*gauges*/) {}
};

// The server's: keeps both.
class ServingObserver final : public EngineObserver {
 public:
  ServingObserver(const std::string& model_name, size_t trace_requests)
      : metrics_(model_name), timeline_(trace_requests) {}

  EngineMetrics& metrics() { return metrics_; }
  const EngineMetrics& metrics() const { return metrics_; }
  const Timeline& timeline() const { return timeline_; }

  // The step between step_began() and its end; any thread.
  StepInProgress step_in_progress(int64_t now_ns) const {
    const int64_t began_ns = step_began_ns_.load();
    if (began_ns == 0) return {};
    return {.seconds = static_cast<double>(now_ns - began_ns) / 1e9,
            .rows = step_rows_.load(),
            .sequences = step_sequences_.load()};
  }

  void request_queued(const Request& request, int64_t now_ns) override {
    timeline_.begin(request.id, now_ns, static_cast<int64_t>(request.prompt.size()), request.cache_salt);
  }
  void request_event(std::string_view id, const TraceEvent& event) override { timeline_.add(id, event); }
  void request_ended(const RequestTimings& timings, std::string_view reason) override {
    metrics_.request_ended(timings, reason);
  }
  void first_token(double seconds) override { metrics_.first_token(seconds); }
  void token_gap(double seconds) override { metrics_.token_gap(seconds); }
  void step_began(int64_t rows, int64_t sequences, int64_t now_ns) override {
    step_rows_.store(rows);
    step_sequences_.store(sequences);
    step_began_ns_.store(now_ns);
  }
  void step_done(int64_t rows, double seconds) override {
    step_began_ns_.store(0);
    metrics_.step(rows, seconds);
  }
  void step_failed() override { step_began_ns_.store(0); }
  void gauges_changed(const EngineGauges& gauges) override { metrics_.set(gauges); }

 private:
  EngineMetrics metrics_;
  Timeline timeline_;
  std::atomic<int64_t> step_began_ns_{0};  // 0: no step is being computed
  std::atomic<int64_t> step_rows_{0};
  std::atomic<int64_t> step_sequences_{0};
};

}  // namespace quire
