// Serves many requests at a time on one model: what the server talks to.
//
// submit() and cancel() may be called from any thread; events are delivered on the engine's own thread, which must
// not be held up. The engine owns checkpoint, tokenizer, template, model, scheduler and cache.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "capacity/memory_plan.h"
#include "engine/engine_options.h"
#include "engine/event.h"
#include "engine/request.h"
#include "engine/request_limits.h"
#include "formats/checkpoint.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace quire {

// The step that is being computed, if one is.
struct StepInProgress {
  double seconds = 0;  // since it began; 0: none is
  int64_t rows = 0;
  int64_t sequences = 0;
};

class Engine {
 public:
  using OnEvent = std::function<void(Event event)>;
  enum class State { kLoading, kReady, kFailed, kDraining };

  virtual ~Engine() = default;

  // Refuses what can never run (kInvalidArgument, kOutOfRange, with the counts) and what the queue has no room for
  // (kResourceExhausted; see retry_after_s). Otherwise `on_event` will hear exactly one terminal event.
  virtual Status submit(Request request, OnEvent on_event) = 0;
  // Ends a request in any state; its terminal event (kCancelled) still comes. Unknown ids are ignored.
  virtual void cancel(std::string_view request_id) = 0;

  virtual State state() const = 0;
  // The weights are still being loaded, whatever else the state says; that cannot be called off.
  virtual bool loading() const = 0;
  virtual Status load_error() const = 0;                    // why state() is kFailed
  virtual std::vector<std::string> load_notes() const = 0;  // sentences about how the model was loaded; when kReady
  // No new requests; returns at once. drained() turns true when the last one has ended.
  virtual void drain() = 0;
  virtual bool drained() const = 0;
  // For whoever watches that steps end.
  virtual StepInProgress step_in_progress() const = 0;
  // Seconds after which a refused request is likely to be taken, from the measured rate; at least 1.
  virtual int64_t retry_after_s() const = 0;

  virtual const Checkpoint& checkpoint() const = 0;  // these four are there from the start, before kReady
  virtual const Tokenizer& tokenizer() const = 0;
  virtual const ChatTemplate* chat_template() const = 0;  // null: the model carries none
  virtual const RequestLimits& limits() const = 0;
  virtual const MemoryPlan& plan() const = 0;

  // JSON documents: what is on, off and why; and one request's timeline: kNotFound when it left the ring, and to whoever
  // asks with another cache_salt than the request's.
  virtual std::string describe_json() const = 0;
  virtual Result<std::string> trace_json(std::string_view request_id, uint64_t cache_salt) const = 0;
  // Metrics in Prometheus' text format.
  virtual std::string metrics_text() const = 0;
};

// Opens the model's headers, tokenizer and template and plans its memory; fails if any of that does. The weights load on
// the engine's thread meanwhile: state() tells.
Result<std::unique_ptr<Engine>> make_engine(const EngineOptions& options);

}  // namespace quire
