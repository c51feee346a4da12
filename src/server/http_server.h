// HTTP/1.1 over TCP, without knowledge of the API: connections, limits, keep-alive, time-outs, server-sent events.
//
// One I/O thread, the caller of run(), runs every handler and every exchange; post() and offload() may be called from
// any thread. A request's body is read whole before the handler sees it. Everything a peer can do ends in an answer or
// a clean close. Sources: RFC 9112 (HTTP/1.1), the WHATWG HTML standard, "Server-sent events".
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "server/http_message.h"

namespace quire {

struct HttpLimits {
  using Duration = std::chrono::milliseconds;

  size_t header_bytes = 32 << 10;
  size_t body_bytes = 16 << 20;
  size_t all_bodies_bytes = 256 << 20;  // of requests being read, all connections together
  size_t unsent_bytes = 4 << 20;        // of one answer; a client that reads no faster is dropped
  size_t connections = 1024;
  Duration header_time = std::chrono::seconds(10);  // from its first byte
  Duration body_grace = std::chrono::seconds(10);   // then body_bytes_per_s at least
  size_t body_bytes_per_s = 1024;
  Duration keep_alive = std::chrono::seconds(75);        // between two requests
  Duration write_stall = std::chrono::seconds(30);       // without a byte taken by the client
  Duration head_delay = std::chrono::seconds(10);        // after which a stream's head leaves even without an event
  Duration comment_interval = std::chrono::seconds(15);  // silence in a stream after which a comment is sent
  Duration linger = std::chrono::seconds(2);             // for the client to read the last answer before the close
};

// One request and its answer in the making. I/O thread only. The holder may keep it as long as it likes: after the
// client has gone, what it sends is dropped.
class HttpExchange {
 public:
  virtual ~HttpExchange() = default;

  virtual HttpRequest& request() = 0;

  // The whole answer.
  virtual void respond(HttpResponse response) = 0;

  // An answer of server-sent events. Its head leaves with the first event or after HttpLimits::head_delay; until then
  // respond() may still replace it.
  virtual void begin_events(HttpResponse head) = 0;
  virtual void send(std::string_view event) = 0;  // framed already (server/sse.h)
  virtual void end_events() = 0;

  virtual bool head_sent() const = 0;
  virtual bool gone() const = 0;  // the client left, or was dropped
  // `callback` is called once, when the client leaves before the answer is complete.
  virtual void on_gone(std::function<void()> callback) = 0;
};

class HttpHandler {
 public:
  virtual ~HttpHandler() = default;

  // Called when the header of a request is there, before its body is: an answer here spares reading it.
  virtual std::optional<HttpResponse> refuse(const HttpRequest& head) = 0;
  // Answers, now or later, through the exchange.
  virtual void handle(std::shared_ptr<HttpExchange> exchange) = 0;
  // For what the transport refuses by itself: a body in the API's form.
  virtual HttpResponse error(int status, std::string message) = 0;
  // Called about four times a second.
  virtual void tick() = 0;
  virtual void signalled(int signal_number) = 0;
};

// Whether `host`, a name or an address, can be reached from this machine only. Fails when it is neither.
Result<bool> is_loopback(const std::string& host);

class HttpServer {
 public:
  // Takes the address and listens; connections wait until run(). `port` 0: any free one. Fails when the address is
  // not of this machine or the port is taken.
  static Result<std::unique_ptr<HttpServer>> bind(const std::string& host, uint16_t port, HttpLimits limits);
  virtual ~HttpServer() = default;

  virtual uint16_t port() const = 0;

  // Serves until stop(). SIGINT, SIGTERM and SIGHUP go to the handler meanwhile.
  virtual void run(HttpHandler& handler) = 0;

  // Runs `task` on the I/O thread, later.
  virtual void post(std::function<void()> task) = 0;
  // Runs `task` on a worker thread, in order of arrival.
  virtual void offload(std::function<void()> task) = 0;

  // The following only on the I/O thread. No new connections or requests; those being answered go on.
  virtual void drain() = 0;
  virtual void stop() = 0;
  virtual size_t connections() const = 0;
  virtual size_t refused_connections() const = 0;  // over the limit, since the start
  virtual size_t open_exchanges() const = 0;       // answers not completely sent
};

}  // namespace quire
