// The server: OpenAI's API over one engine. What `quire serve` runs.
//
//   bind() takes the address, before the model is loaded: a port that is taken fails at once, and clients that come
//   early wait. run() serves until a signal ends it.
//
// docs/api.md describes every route and field.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"
#include "http/http_server.h"
#include "options/options.h"

namespace quire {

struct ServerOptions {
  ListenAddress address = {.port = 8000};
  std::optional<uint16_t> admin_port = {};  // for probes and metrics alone; 0: any free one
  std::vector<std::string> api_keys = {};
  std::vector<std::string> cors_origins = {};  // AccessPolicy
  bool insecure = false;
  std::vector<std::string> model_names = {};  // the first is reported; at least one
  bool lenient = false;
  bool clamp_max_tokens = false;
  double ready_delay_s = 0;  // from the first signal, when /ready turns 503, to when the listener closes
  double drain_s = 30;
  double stall_s = 30;        // after which a step that has not ended is reported
  int64_t request_bytes = 0;  // that requests may hold together; 0: what the engine's memory plan leaves them
  // Called on the I/O thread when a second signal asks for the end: the caller ends the program soon, whatever hangs.
  std::function<void()> on_second_signal = {};
  std::string log_file = "-";
  Options request_defaults = {};  // what requests do not say
  HttpLimits limits = {};
};

class Server {
 public:
  // Fails, before anything listens, on an address that others can reach without a key (unless `insecure`), and on
  // origins that no page has.
  static Result<std::unique_ptr<Server>> bind(ServerOptions options);
  virtual ~Server() = default;

  virtual uint16_t port() const = 0;
  virtual uint16_t admin_port() const = 0;  // 0: there is none
  virtual std::string url() const = 0;      // "http://127.0.0.1:8000", or "unix:PATH"

  // Serves on the calling thread. Ok after SIGTERM or SIGINT once all requests have ended or the drain time is over;
  // kCancelled after a second signal; the engine's error when the model cannot be loaded.
  virtual Status run(Engine& engine) = 0;
  // Does what SIGTERM does. Any thread.
  virtual void shut_down() = 0;
};

}  // namespace quire
