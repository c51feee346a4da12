// An engine without a model, for tests of the server: deterministic tokens, one a step for every choice of every
// request, on a thread of its own.
//
// A token is a byte; the answer's letters depend on the prompt, the seed (where the temperature is above 0) and the
// position. Words in the prompt steer it: "eos=5" ends the answer with an EOS token after 5 others, "fail=5" fails the request there,
// "hang" never yields a token.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/engine.h"

namespace quire {

struct FakeEngineOptions {
  int64_t context = 4096;
  size_t max_requests = 1024;              // more are refused: the queue is full
  std::chrono::microseconds step_time{0};  // pause between steps
  // Steps without a pause, or a yield, which beside busy programs costs as much as a pause.
  int64_t steps_at_a_time = 1;
  bool has_template = true;
  int64_t request_bytes = 256 << 20;  // that the memory plan leaves requests
  Engine::State state = Engine::State::kReady;
};

class FakeEngine : public Engine {
 public:
  explicit FakeEngine(FakeEngineOptions options = {});
  ~FakeEngine() override;

  Status submit(Request request, OnEvent on_event) override;
  void cancel(std::string_view request_id) override;
  State state() const override { return state_; }
  bool loading() const override { return state_ == State::kLoading; }
  std::vector<std::string> load_notes() const override { return {}; }
  Status load_error() const override { return corrupt("model.gguf: the file is cut off"); }
  void drain() override { state_ = State::kDraining; }
  bool drained() const override;
  int64_t retry_after_s() const override { return 7; }
  const Checkpoint& checkpoint() const override { return *checkpoint_; }
  const Tokenizer& tokenizer() const override { return *tokenizer_; }
  const ChatTemplate* chat_template() const override { return chat_template_ ? &*chat_template_ : nullptr; }
  const RequestLimits& limits() const override { return limits_; }
  const MemoryPlan& plan() const override { return plan_; }
  std::string describe_json() const override { return R"({"policy":"fake"})"; }
  Result<std::string> trace_json(std::string_view request_id, uint64_t cache_salt) const override;
  StepInProgress step_in_progress() const override { return {.seconds = step_seconds_, .rows = 7, .sequences = 3}; }
  void set_step_seconds(double seconds) { step_seconds_ = seconds; }
  std::string metrics_text() const override { return "# TYPE quire_fake gauge\nquire_fake 1\n"; }

  void set_state(State state) { state_ = state; }
  size_t live_requests() const;
  int64_t cancelled_requests() const { return cancelled_; }
  std::vector<Request> seen_requests() const;  // all that were submitted

 private:
  struct Live {
    Request request;
    OnEvent on_event;
    int64_t step = 0;
    std::vector<std::string> texts;  // per choice, whole
    std::vector<std::string> finish_reasons;
    std::vector<std::string> stop_texts;
    std::vector<bool> finished;
    int64_t generated = 0;
    int64_t fails_at = -1;
    bool hangs = false;
    bool cancelled = false;
  };

  void plan_answer(Live& live) const;
  void run();
  bool step(Live& live);  // true: the terminal event was sent
  void emit_token(Live& live, size_t choice) const;

  const FakeEngineOptions options_;
  RequestLimits limits_;
  std::unique_ptr<Checkpoint> checkpoint_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::optional<ChatTemplate> chat_template_;
  MemoryPlan plan_;
  std::atomic<State> state_;
  std::atomic<int64_t> cancelled_ = 0;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::map<std::string, std::unique_ptr<Live>, std::less<>> live_;
  std::vector<Request> seen_;
  bool ending_ = false;
  std::atomic<double> step_seconds_{0};
  std::thread thread_;
};

}  // namespace quire
