// The engine's thread around the core, over a tiny model: every door that other threads use, and what each request hears.
#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/engine.h"

namespace quire {
namespace {

// Hears one request; any thread may wait for its end.
class Listener {
 public:
  Engine::OnEvent hear() {
    return [this](Event event) {
      const std::lock_guard lock(mutex_);
      EXPECT_FALSE(ended_) << "an event after the terminal one";
      ended_ = event.kind == Event::Kind::kFinished || event.kind == Event::Kind::kFailed;
      tokens_ += event.ids.size();
      if (ended_) error_ = event.error;
      changed_.notify_all();
    };
  }
  Status end() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ended_; });
    return error_;
  }
  void first_token() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ended_ || tokens_ > 0; });
  }
  size_t tokens() {
    const std::lock_guard lock(mutex_);
    return tokens_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  size_t tokens_ = 0;
  Status error_;
};

EngineOptions tiny_options() {
  EngineOptions options;
  options.model.model_path = std::string(QUIRE_SOURCE_DIR) + "/tests/golden/tiny/llama-mqa-sharded";
  options.model.threads = 1;
  options.model.context = 128;
  options.scheduler.max_seqs = 2;
  options.scheduler.max_step_rows = 64;
  return options;
}

std::unique_ptr<Engine> start(const EngineOptions& options) {
  auto engine = make_engine(options);
  EXPECT_TRUE(engine.ok()) << engine.status().message();
  while ((*engine)->state() == Engine::State::kLoading) {
    std::this_thread::yield();
  }
  return std::move(*engine);
}

Request request_of(const std::string& id, size_t prompt, int64_t max_tokens) {
  Request request;
  request.id = id;
  request.prompt.assign(prompt, 5);
  request.max_tokens = max_tokens;
  request.ignore_eos = true;
  return request;
}

TEST(ServingEngine, ServesAPromptLongerThanTheQueuesTokens) {
  EngineOptions options = tiny_options();
  options.scheduler.queue.max_tokens = 10;
  const auto engine = start(options);
  Listener listener;
  const Status taken = engine->submit(request_of("a", 15, 3), listener.hear());
  ASSERT_TRUE(taken.ok()) << taken.message();
  EXPECT_TRUE(listener.end().ok());
  EXPECT_EQ(listener.tokens(), 3u);
}

TEST(ServingEngine, RefusesAtOnceWhatCanNeverRun) {
  const auto engine = start(tiny_options());
  Listener listener;
  EXPECT_EQ(engine->submit(request_of("a", 120, 20), listener.hear()).code(), StatusCode::kOutOfRange);
  EXPECT_EQ(engine->submit(request_of("b", 0, 20), listener.hear()).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(listener.tokens(), 0u);
}

TEST(ServingEngine, CancelsARunningRequestAndOneThatWaits) {
  EngineOptions options = tiny_options();
  options.scheduler.max_seqs = 1;
  const auto engine = start(options);
  Listener running;
  Listener waiting;
  Listener next;
  ASSERT_TRUE(engine->submit(request_of("running", 5, 120), running.hear()).ok());
  ASSERT_TRUE(engine->submit(request_of("waiting", 5, 120), waiting.hear()).ok());
  engine->cancel("waiting");
  EXPECT_EQ(waiting.end().code(), StatusCode::kCancelled);
  engine->cancel("running");
  const Status ended = running.end();
  EXPECT_TRUE(ended.ok() || ended.code() == StatusCode::kCancelled);
  engine->cancel("nobody");
  ASSERT_TRUE(engine->submit(request_of("next", 5, 2), next.hear()).ok());
  EXPECT_TRUE(next.end().ok());
}

TEST(ServingEngine, ATwinOfALiveIdFailsAlone) {
  const auto engine = start(tiny_options());
  Listener first;
  Listener twin;
  ASSERT_TRUE(engine->submit(request_of("a", 5, 100), first.hear()).ok());
  ASSERT_TRUE(engine->submit(request_of("a", 5, 100), twin.hear()).ok());
  const Status twins_end = twin.end();
  EXPECT_TRUE(twins_end.ok() || twins_end.code() == StatusCode::kInvalidArgument) << "ok: the first had ended";
  EXPECT_TRUE(first.end().ok());
}

TEST(ServingEngine, EndsEveryRequestWhenItIsDestroyed) {
  std::vector<Listener> listeners(6);
  {
    const auto engine = start(tiny_options());
    for (size_t i = 0; i < listeners.size(); ++i)
      ASSERT_TRUE(engine->submit(request_of(std::to_string(i), 5, 120), listeners[i].hear()).ok());
  }
  for (Listener& listener : listeners) {
    const Status ended = listener.end();
    EXPECT_TRUE(ended.ok() || ended.code() == StatusCode::kCancelled) << ended.message();
  }
}

TEST(ServingEngine, DrainsWhatItHasAndTakesNoMore) {
  const auto engine = start(tiny_options());
  Listener running;
  ASSERT_TRUE(engine->submit(request_of("a", 5, 60), running.hear()).ok());
  engine->drain();
  Listener late;
  EXPECT_EQ(engine->submit(request_of("b", 5, 5), late.hear()).code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(running.end().ok());
  while (!engine->drained()) {
    std::this_thread::yield();
  }
  EXPECT_EQ(running.tokens(), 60u);
}

TEST(ServingEngine, CountsWhatItRefusedAndWhatEnded) {
  EngineOptions options = tiny_options();
  options.scheduler.queue.max_requests = 1;
  options.scheduler.max_seqs = 1;
  const auto engine = start(options);
  Listener first;
  Listener second;
  Listener third;
  ASSERT_TRUE(engine->submit(request_of("first", 5, 100), first.hear()).ok());
  first.first_token();
  const Status waits = engine->submit(request_of("second", 5, 2), second.hear());
  const Status refused = engine->submit(request_of("third", 5, 2), third.hear());
  EXPECT_TRUE(first.end().ok());
  if (waits.ok()) {
    EXPECT_TRUE(second.end().ok());
  }
  if (refused.ok()) {
    EXPECT_TRUE(third.end().ok());
  } else {
    EXPECT_NE(refused.message().find("try again in"), std::string::npos) << refused.message();
    EXPECT_NE(engine->metrics_text().find("queue_full"), std::string::npos);
  }
  EXPECT_NE(engine->metrics_text().find("reason=\"length\""), std::string::npos);
  EXPECT_TRUE(engine->trace_json("first", 0).ok());
}

}  // namespace
}  // namespace quire
