#include "server/server.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "http/cors.h"
#include "server/access_policy.h"
#include "server/api_handler.h"
#include "server/memory_pressure.h"
#include "server/prompt_encoder.h"
#include "server/request_log.h"

namespace quire {
namespace {

class BoundServer : public Server {
 public:
  BoundServer(ServerOptions options, bool is_loopback, std::unique_ptr<RequestLog> log,
              std::unique_ptr<HttpServer> http)
      : options_(std::move(options)),
        access_(options_.api_keys, is_loopback && !options_.address.is_unix(), options_.address.host,
                options_.cors_origins),
        log_(std::move(log)),
        http_(std::move(http)) {}

  uint16_t port() const override { return http_->port(); }

  uint16_t admin_port() const override { return http_->admin_port(); }

  std::string url() const override {
    const std::string& host = options_.address.host;
    if (options_.address.is_unix()) return host;
    const bool is_ipv6 = host.find(':') != std::string::npos;
    return "http://" + (is_ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port());
  }

  Status run(Engine& engine) override {
    QUIRE_ASSIGN_OR_RETURN(const PromptEncoder encoder, PromptEncoder::create(engine));
    const int64_t bytes = options_.request_bytes > 0 ? options_.request_bytes : engine.plan().request_bytes;
    budget_ = std::make_unique<ByteBudget>(std::min(bytes, address_space_left() / 2));
    ApiHandler handler({.options = options_,
                        .access = access_,
                        .encoder = encoder,
                        .engine = engine,
                        .http = *http_,
                        .log = *log_,
                        .budget = *budget_});
    handler_ = &handler;
    http_->run(handler, *budget_);
    handler_ = nullptr;
    return handler.outcome();
  }

  void shut_down() override {
    http_->post([this] {
      if (handler_ != nullptr) handler_->signalled(SIGTERM);
    });
  }

 private:
  ServerOptions options_;
  AccessPolicy access_;
  std::unique_ptr<RequestLog> log_;
  std::unique_ptr<ByteBudget> budget_;  // outlives what still waits in http_ when it has stopped
  std::unique_ptr<HttpServer> http_;
  ApiHandler* handler_ = nullptr;  // while run() runs; the I/O thread's
};

}  // namespace

Result<std::unique_ptr<Server>> Server::bind(ServerOptions options) {
  QUIRE_ASSIGN_OR_RETURN(const bool loopback, is_loopback(options.address.host));
  if (!loopback && options.api_keys.empty() && !options.insecure) {
    return invalid_argument("--host " + options.address.host +
                            " can be reached by others, and there is no API key: give one with --api-key or "
                            "QUIRE_API_KEY, or say --insecure to serve everybody");
  }
  for (std::string& origin : options.cors_origins) {
    QUIRE_ASSIGN_OR_RETURN(origin, parse_origin(origin));
  }
  QUIRE_ASSIGN_OR_RETURN(auto log, RequestLog::open(options.log_file));
  std::optional<ListenAddress> admin;
  if (options.admin_port) {
    admin = ListenAddress{.host = options.address.is_unix() ? "127.0.0.1" : options.address.host,
                          .port = *options.admin_port};
  }
  QUIRE_ASSIGN_OR_RETURN(auto http, HttpServer::bind(options.address, admin, options.limits));
  return std::unique_ptr<Server>(
      std::make_unique<BoundServer>(std::move(options), loopback, std::move(log), std::move(http)));
}

}  // namespace quire
