// An EngineCore over a real model, driven to the end of its requests without threads: what a test of serving needs.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine_core.h"
#include "engine/runner.h"
#include "formats/checkpoint.h"

namespace quire {

struct TestEngineOptions {
  std::string path;
  CpuDeviceOptions device;
  SchedulerConfig scheduler;
  int64_t context = 512;
  int64_t kv_tokens = 8192;  // of every group's pool
  bool prefix_caching = true;
  KvLayout layout = KvLayout::kPaged;
  std::function<Executor&(Executor&)> wrap;  // what the core drives in place of the model's executor
};

// All that a request said, for comparing.
struct Heard {
  struct Choice {
    std::string text;
    std::vector<int32_t> ids;
    std::vector<float> logprobs;  // of the chosen and the best tokens, in order
    std::string finish_reason;
  };
  std::vector<Choice> choices;
  std::vector<float> prompt_logprobs;
  int terminal_events = 0;
  Status error;
  RequestTimings timings;
};

class TestEngine {
 public:
  static Result<std::unique_ptr<TestEngine>> create(const TestEngineOptions& options);
  ~TestEngine();

  EngineCore& core() { return *core_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  int64_t now_ns = 1;  // the injected clock: a microsecond passes at each look

  Status submit(const Request& request);
  // Steps until nothing is left to do.
  void run();
  std::map<std::string, Heard> take_heard() { return std::exchange(heard_, {}); }

 private:
  std::unique_ptr<Checkpoint> checkpoint_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<Runner> runner_;
  EngineObserver observer_;
  std::unique_ptr<EngineCore> core_;
  std::map<std::string, Heard> heard_;
};

}  // namespace quire
