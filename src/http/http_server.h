// HTTP/1.1 over TCP or a Unix-domain socket, without knowledge of the API: connections, limits, keep-alive, time-outs,
// server-sent events.
//
// One I/O thread, the caller of run(), runs every handler and every exchange; post() may be called from any thread. A
// request's body is read whole before the handler sees it. Everything a peer can do ends in an answer or a clean close.
//
// Places: up to HttpLimits::connections at a time. Where they are all taken, the connection that has been idle longest
// gives way. Where none is idle, further ones may ask what HttpHandler::is_probe() admits and nothing else, so that
// whoever watches the server still hears from it.
// Sources: RFC 9112 (HTTP/1.1), the WHATWG HTML standard, "Server-sent events".
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/byte_budget.h"
#include "base/status.h"
#include "http/http_message.h"

namespace quire {

struct HttpLimits {
  using Duration = std::chrono::milliseconds;

  size_t header_bytes = 32 << 10;
  size_t body_bytes = 16 << 20;
  size_t unsent_bytes = 4 << 20;  // of one answer; a client that reads no faster is dropped
  size_t connections = 1024;
  size_t connections_of_address = 0;                // 0: no limit of its own
  Duration header_time = std::chrono::seconds(10);  // from its first byte, or from the connection's begin
  Duration body_window = std::chrono::seconds(10);  // in each, body_bytes_per_s are to arrive on average, or the rest
  size_t body_bytes_per_s = 16 << 10;
  Duration keep_alive = std::chrono::seconds(75);        // between two requests
  Duration write_stall = std::chrono::seconds(30);       // without a byte taken by the client
  Duration head_delay = std::chrono::seconds(10);        // after which a stream's head leaves even without an event
  Duration comment_interval = std::chrono::seconds(15);  // silence in a stream after which a comment is sent
  Duration linger = std::chrono::seconds(2);             // for the client to read the last answer before the close
};

// One request and its answer in the making. I/O thread only, but for gone(). The holder may keep it as long as it likes: after the
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
  virtual void send(std::string_view event) = 0;  // framed already (http/sse.h)
  virtual void end_events() = 0;

  virtual bool head_sent() const = 0;
  virtual bool gone() const = 0;  // the client left, or was dropped; any thread
  // `callback` is called once, when the client leaves before the answer is complete.
  virtual void on_gone(std::function<void()> callback) = 0;
};

class HttpHandler {
 public:
  virtual ~HttpHandler() = default;

  // Called when the header of a request is there, before its body is: an answer here spares reading it.
  virtual std::optional<HttpResponse> refuse(const HttpRequest& head) = 0;
  // Whether such a request is answered even where no place is left.
  virtual bool is_probe(const HttpRequest& head) = 0;
  // Answers, now or later, through the exchange.
  virtual void handle(std::shared_ptr<HttpExchange> exchange) = 0;
  // For what the transport refuses by itself: an answer in the API's form. `head`: null where it was not read.
  virtual HttpResponse error(int status, std::string message, const HttpRequest* head) = 0;
  // Called about four times a second.
  virtual void tick() = 0;
  virtual void signalled(int signal_number) = 0;
};

// Where to listen: an address and a port, or "unix:PATH".
struct ListenAddress {
  std::string host = "127.0.0.1";
  uint16_t port = 0;            // 0: any free one
  uint32_t socket_mode = 0600;  // permissions of a Unix-domain socket

  bool is_unix() const { return host.starts_with("unix:"); }
};

// Whether `host` can be reached from this machine only. Fails when it is neither a name, an address nor unix:PATH.
Result<bool> is_loopback(const std::string& host);

class HttpServer {
 public:
  // Takes the address and listens; connections wait until run(). `admin`, if given, is listened on too, and its
  // connections count for no limit. Fails when an address is not of this machine or is taken.
  static Result<std::unique_ptr<HttpServer>> bind(const ListenAddress& address,
                                                  const std::optional<ListenAddress>& admin, HttpLimits limits);
  virtual ~HttpServer() = default;

  virtual uint16_t port() const = 0;        // 0: a Unix-domain socket
  virtual uint16_t admin_port() const = 0;  // 0: there is none

  // Serves until stop(). Bodies and answers count against `budget`, which outlives the server. SIGINT, SIGTERM,
  // SIGHUP, SIGUSR1 and SIGUSR2 go to the handler meanwhile.
  virtual void run(HttpHandler& handler, ByteBudget& budget) = 0;

  // Runs `task` on the I/O thread, later.
  virtual void post(std::function<void()> task) = 0;

  // The following only on the I/O thread. No new connections or requests; those being answered go on.
  virtual void drain() = 0;
  virtual void stop() = 0;
  virtual size_t connections() const = 0;
  virtual size_t refused_connections() const = 0;  // that found no place, since the start
  virtual size_t evicted_connections() const = 0;  // idle ones that gave way
  virtual size_t open_exchanges() const = 0;       // answers not completely sent
};

}  // namespace quire
