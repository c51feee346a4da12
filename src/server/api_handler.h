// Routes requests to what answers them, and steers the life of the server: loading, ready, draining, stopped.
// I/O thread only, except for what it hands to the workers.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "engine/engine.h"
#include "http/http_server.h"
#include "server/access_policy.h"
#include "server/generation.h"
#include "server/memory_pressure.h"
#include "server/prompt_encoder.h"
#include "server/reply.h"
#include "server/request_log.h"
#include "server/server.h"
#include "server/worker_pool.h"

namespace quire {

class ApiHandler : public HttpHandler {
 public:
  // All of these outlive the handler.
  struct Parts {
    const ServerOptions& options;
    const AccessPolicy& access;
    const PromptEncoder& encoder;
    Engine& engine;
    HttpServer& http;
    RequestLog& log;
    ByteBudget& budget;  // of what requests hold
  };

  explicit ApiHandler(Parts parts);

  std::optional<HttpResponse> refuse(const HttpRequest& head) override;
  void handle(std::shared_ptr<HttpExchange> exchange) override;
  bool is_probe(const HttpRequest& head) override;
  HttpResponse error(int status, std::string message, const HttpRequest* head) override;
  void tick() override;
  void signalled(int signal_number) override;

  // What run() returns, once the HTTP server has stopped.
  const Status& outcome() const { return outcome_; }

 private:
  using Clock = std::chrono::steady_clock;
  using ReplyPointer = std::shared_ptr<Reply>;
  struct Route {
    std::string_view method;
    std::string_view path;
    bool open = false;    // needs no key
    bool prefix = false;  // `path` and whatever follows it
    void (ApiHandler::*answer)(ReplyPointer);
  };
  static const Route kRoutes[];

  // The path without the slash that clients put behind it when they put it behind their base URL.
  static std::string_view path_of(const HttpRequest& request);
  static const Route* find_route(std::string_view method, std::string_view path, bool* path_exists);
  std::optional<ApiError> check(const HttpRequest& request, const Route*& route) const;
  ReplyPointer make_reply(std::shared_ptr<HttpExchange> exchange, std::string_view route);

  void answer_index(ReplyPointer reply);
  void answer_health(ReplyPointer reply);
  void answer_ready(ReplyPointer reply);
  void answer_version(ReplyPointer reply);
  void answer_metrics(ReplyPointer reply);
  void answer_engine(ReplyPointer reply);
  void answer_models(ReplyPointer reply);
  void answer_model(ReplyPointer reply);
  void answer_trace(ReplyPointer reply);
  void answer_chat(ReplyPointer reply) { generate(std::move(reply), Api::kChat); }
  void answer_completions(ReplyPointer reply) { generate(std::move(reply), Api::kCompletions); }
  void answer_tokenize(ReplyPointer reply);
  void answer_detokenize(ReplyPointer reply);
  void answer_tokenizer_info(ReplyPointer reply);

  void generate(ReplyPointer reply, Api api);
  void start_generation(ReplyPointer reply, GenerationCall call, std::vector<std::vector<int32_t>> prompts);
  // Runs `work` on a worker; it returns what to do here afterwards. Fails the reply when there is no worker or no memory
  // for it, and forgets the work when the client leaves.
  using Work = std::function<std::function<void()>(const WorkBudget& budget)>;
  void run_work(const ReplyPointer& reply, Work work);

  std::string model_json(std::string_view name) const;
  bool serves(std::string_view name) const;
  void announce_end();
  void begin_drain();
  void stop(Status outcome);
  void watch_memory();
  void watch_steps();
  std::string metrics_text() const;

  Parts parts_;
  RequestCounters counters_;
  GenerationTable generations_;
  WorkerPool workers_;
  MemoryPressure pressure_;
  int64_t started_s_;                              // since the epoch
  std::optional<Clock::time_point> drain_begins_;  // there: the end was asked for
  std::optional<Clock::time_point> drain_ends_;    // there: the listener is closed
  bool stalled_ = false;                           // the engine's step has not ended for too long
  bool aborted_ = false;                           // the drain time is over
  bool was_ready_ = false;
  bool stopped_ = false;
  Status outcome_;
};

}  // namespace quire
