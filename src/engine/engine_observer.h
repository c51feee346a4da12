// Hears what the engine's core does, as it does it: metrics and timelines are made from this. The base hears nothing.
//
// Thread: the core's. Must not call back into the core.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/event.h"
#include "engine/metrics.h"
#include "engine/timeline.h"

namespace quire {

class EngineObserver {
 public:
  virtual ~EngineObserver() = default;

  virtual void request_queued(const std::string& /*id*/, int64_t /*now_ns*/, int64_t /*prompt_tokens*/) {}
  virtual void request_event(std::string_view /*id*/, const TraceEvent& /*event*/) {}
  // `reason` is a finish reason, or why the request failed: "cancelled", "deadline_exceeded", "error".
  virtual void request_ended(const RequestTimings& /*timings*/, std::string_view /*reason*/) {}
  virtual void first_token(double /*seconds*/) {}
  virtual void token_gap(double /*seconds*/) {}
  virtual void step_done(int64_t /*rows*/, double /*seconds*/) {}
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

  void request_queued(const std::string& id, int64_t now_ns, int64_t prompt_tokens) override {
    timeline_.begin(id, now_ns, prompt_tokens);
  }
  void request_event(std::string_view id, const TraceEvent& event) override { timeline_.add(id, event); }
  void request_ended(const RequestTimings& timings, std::string_view reason) override {
    metrics_.request_ended(timings, reason);
  }
  void first_token(double seconds) override { metrics_.first_token(seconds); }
  void token_gap(double seconds) override { metrics_.token_gap(seconds); }
  void step_done(int64_t rows, double seconds) override { metrics_.step(rows, seconds); }
  void gauges_changed(const EngineGauges& gauges) override { metrics_.set(gauges); }

 private:
  EngineMetrics metrics_;
  Timeline timeline_;
};

}  // namespace quire
