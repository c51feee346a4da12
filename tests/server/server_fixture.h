// A server over a fake engine on a free port of the loopback, for one test.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "base/check.h"
#include "server/fake_engine.h"
#include "server/raw_client.h"
#include "server/server.h"

namespace quire {

class RunningServer {
 public:
  explicit RunningServer(FakeEngineOptions engine_options = {}, ServerOptions options = {}) : engine_(engine_options) {
    options.address.port = 0;
    options.log_file = "none";
    options.model_names = {"fake", "alias"};
    auto bound = Server::bind(std::move(options));
    QUIRE_CHECK(bound.ok());
    server_ = std::move(*bound);
    thread_ = std::thread([this] { status_ = server_->run(engine_); });
  }
  ~RunningServer() {
    if (!thread_.joinable()) return;
    server_->shut_down();
    server_->shut_down();  // whatever still runs is not waited for
    thread_.join();
  }

  uint16_t port() const { return server_->port(); }
  uint16_t admin_port() const { return server_->admin_port(); }
  FakeEngine& engine() { return engine_; }
  void shut_down() { server_->shut_down(); }
  Status wait() {
    thread_.join();
    return status_;
  }

  // One request on a connection of its own.
  RawAnswer ask(const std::string& request) const {
    RawClient client(port());
    client.send(request);
    return client.answer();
  }

  // Whether the engine comes to have `count` requests, soon. For states that last: one that passes may be missed.
  bool engine_has(size_t count) const {
    return soon([&] { return engine_.live_requests() == count; });
  }
  // Whether `count` requests come to have been cancelled, soon.
  bool engine_cancelled(int64_t count) const {
    return soon([&] { return engine_.cancelled_requests() == count; });
  }

  // Whether `condition` comes to hold.
  template <typename Condition>
  static bool soon(Condition&& condition) {
    for (int i = 0; i < 2000; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }

 private:
  FakeEngine engine_;
  std::unique_ptr<Server> server_;
  Status status_;
  std::thread thread_;
};

inline constexpr const char* kChat = "/v1/chat/completions";
inline constexpr const char* kCompletions = "/v1/completions";

// What stands between `before` and `after`, the first time; empty: nothing does.
inline std::string between(const std::string& text, const std::string& before, const std::string& after) {
  const size_t begin = text.find(before);
  if (begin == std::string::npos) return {};
  const size_t end = text.find(after, begin + before.size());
  return text.substr(begin + before.size(), end - begin - before.size());
}

inline size_t occurrences(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

// The concatenated deltas of choice `index` of a stream.
inline std::string streamed_text(const std::string& body, int index, const std::string& key) {
  const std::string head = "\"choices\":[{\"index\":" + std::to_string(index) + ",";
  std::string text;
  for (size_t at = 0; (at = body.find(head, at)) != std::string::npos; at += head.size()) {
    const std::string event = body.substr(at, body.find("\n\n", at) - at);
    text += between(event, "\"" + key + "\":\"", "\"");
  }
  return text;
}

}  // namespace quire
