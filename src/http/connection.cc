#include "http/connection.h"

#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <new>
#include <optional>
#include <utility>

#include "http/pending_answer.h"
#include "http/sse.h"

namespace quire {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr auto kNoThrow = asio::as_tuple(asio::use_awaitable);
constexpr size_t kReadBytes = 16 << 10;
// Bytes read ahead of the parser: pipelined requests wait in the kernel beyond that.
constexpr size_t kMaxReadAhead = 32 << 10;

using Parser = http::request_parser<http::buffer_body>;

struct Refusal {
  int status = 400;
  std::string message;
};

Refusal refusal_of(const error_code& error, const HttpLimits& limits) {
  if (error == http::error::header_limit) {
    return {431, "the request's header is over " + std::to_string(limits.header_bytes) + " bytes"};
  }
  if (error == http::error::body_limit) {
    return {413, "the request's body is over " + std::to_string(limits.body_bytes) + " bytes (--max-body-mib)"};
  }
  return {400, "not a request of HTTP/1.1: " + error.message()};
}

// Counts an exchange while it is open, however it ends.
class OpenExchange {
 public:
  explicit OpenExchange(ConnectionHost& host) : host_(host) { ++host_.open_exchanges; }
  ~OpenExchange() { --host_.open_exchanges; }
  OpenExchange(const OpenExchange&) = delete;
  OpenExchange& operator=(const OpenExchange&) = delete;

 private:
  ConnectionHost& host_;
};

class SocketConnection : public Connection, public std::enable_shared_from_this<SocketConnection> {
 public:
  SocketConnection(asio::io_context& io, int fd, std::string peer, ConnectionHost& host, Place place)
      : socket_(io), wake_(io), room_(io), peer_(std::move(peer)), host_(host), place_(place) {
    error_code error;
    socket_.assign(tcp::v4(), fd, error);  // the family only matters for opening
    socket_.non_blocking(true, error);
    socket_.set_option(tcp::no_delay(true), error);
    socket_.set_option(asio::socket_base::keep_alive(true), error);
    wake_.expires_at(Clock::time_point::max());
    room_.expires_at(Clock::time_point::max());
  }

  void start(std::function<void(Connection*)> closed) {
    closed_ = std::move(closed);
    asio::co_spawn(
        socket_.get_executor(), [self = shared_from_this()] { return self->read_all(); }, asio::detached);
    asio::co_spawn(
        socket_.get_executor(), [self = shared_from_this()] { return self->serve(); }, asio::detached);
  }

  void tick(Clock::time_point now) override {
    if (now > deadline_) return abort();
    if (!answer_ || !answer_->streaming() || answer_->ended()) return;
    if (!answer_->head_sent()) {
      if (now - last_output_ > host_.limits.head_delay) answer_->release_head();
    } else if (now - last_output_ > host_.limits.comment_interval) {
      answer_->send(kSseComment);
    }
  }

  void drain() override {
    if (answer_) answer_->close_after();
    wake_.cancel();
  }

  void close() override { abort(); }

  Place place() const override { return place_; }
  const std::string& peer() const override { return peer_; }
  std::optional<Clock::time_point> idle_since() const override { return idle_since_; }

 private:
  asio::awaitable<void> read_all();
  asio::awaitable<void> read_input();
  asio::awaitable<void> serve();
  asio::awaitable<void> serve_all();
  asio::awaitable<bool> serve_one();
  asio::awaitable<bool> parse_header(Parser& parser);
  asio::awaitable<bool> read_body(Parser& parser, HttpRequest* request);
  asio::awaitable<bool> answer(HttpRequest request, AnswerForm form);
  asio::awaitable<bool> write(std::string bytes);
  asio::awaitable<void> refuse_and_close(HttpResponse response);
  asio::awaitable<void> linger();
  asio::awaitable<void> wait();

  std::optional<HttpResponse> check_header(const HttpRequest& request) const;
  HttpRequest take_header(Parser& parser) const;
  size_t feed(Parser& parser, error_code& error);
  void abort();

  tcp::socket socket_;
  asio::steady_timer wake_;  // never expires: cancelled to wake serve()
  asio::steady_timer room_;  // the same for read_all()
  std::string peer_;
  ConnectionHost& host_;
  const Place place_;
  std::function<void(Connection*)> closed_;

  std::array<char, kReadBytes> read_buffer_;
  std::string input_;        // read, not yet parsed
  bool ended_ = false;       // the client sends no more, or the socket is closed
  bool discarding_ = false;  // the last answer is written: what still arrives is of no interest
  std::shared_ptr<PendingAnswer> answer_;
  Clock::time_point deadline_ = Clock::time_point::max();
  Clock::time_point last_output_{};
  std::optional<Clock::time_point> idle_since_ = Clock::now();
  bool had_request_ = false;
};

// Closes at once, whatever is under way; both coroutines then run to their end.
void SocketConnection::abort() {
  error_code ignored;
  socket_.close(ignored);
  ended_ = true;
  deadline_ = Clock::time_point::max();
  wake_.cancel();
  room_.cancel();
}

asio::awaitable<void> SocketConnection::wait() { co_await wake_.async_wait(kNoThrow); }

asio::awaitable<void> SocketConnection::read_all() {
  try {
    co_await read_input();
  } catch (const std::bad_alloc&) {
    abort();
  }
}

asio::awaitable<void> SocketConnection::read_input() {
  while (!ended_) {
    if (input_.size() > kMaxReadAhead) {
      co_await room_.async_wait(kNoThrow);
      continue;
    }
    const auto [error, bytes] = co_await socket_.async_read_some(asio::buffer(read_buffer_), kNoThrow);
    if (error) {
      ended_ = true;
      // Nobody will read the answer that is being made.
      if (answer_ && !answer_->ended()) abort();
    } else if (!discarding_) {
      input_.append(read_buffer_.data(), bytes);
    }
    wake_.cancel();
  }
}

asio::awaitable<void> SocketConnection::serve() {
  bool out_of_memory = false;
  try {
    co_await serve_all();
  } catch (const std::bad_alloc&) {
    out_of_memory = true;
  }
  // What was read, and made of it, is freed by now.
  if (out_of_memory && !answer_) {
    input_ = {};
    try {
      co_await refuse_and_close(host_.handler->error(503, "out of memory; try again later", nullptr));
      co_await linger();
    } catch (const std::bad_alloc&) {
      input_ = {};
    }
  }
  if (answer_) std::exchange(answer_, nullptr)->client_left();
  abort();
  closed_(this);
}

asio::awaitable<void> SocketConnection::serve_all() {
  bool go_on = true;
  while (go_on) go_on = co_await serve_one();
  co_await linger();
}

size_t SocketConnection::feed(Parser& parser, error_code& error) {
  const size_t used = parser.put(asio::buffer(input_), error);
  input_.erase(0, used);
  if (input_.size() <= kMaxReadAhead) room_.cancel();
  return used;
}

// Reads up to the end of the header. False: there is no request to answer.
asio::awaitable<bool> SocketConnection::parse_header(Parser& parser) {
  // Who has asked for nothing yet is given less time than who may ask again.
  deadline_ = Clock::now() + (had_request_ ? host_.limits.keep_alive : host_.limits.header_time);
  idle_since_ = Clock::now();
  while (true) {
    input_.erase(0, input_.find_first_not_of("\r\n"));  // RFC 9112, 2.2: empty lines before a request are no error
    if (!input_.empty()) break;
    if (ended_ || host_.draining) co_return false;
    co_await wait();
  }
  idle_since_.reset();
  had_request_ = true;
  deadline_ = Clock::now() + host_.limits.header_time;
  while (!parser.is_header_done()) {
    error_code error;
    feed(parser, error);
    if (error == http::error::need_more) {
      if (ended_) co_return false;
      co_await wait();
    } else if (error) {
      const Refusal refusal = refusal_of(error, host_.limits);
      // A body that is announced as too large is found behind the last field.
      const HttpRequest head = error == http::error::body_limit ? take_header(parser) : HttpRequest();
      co_await refuse_and_close(
          host_.handler->error(refusal.status, refusal.message, head.headers.empty() ? nullptr : &head));
      co_return false;
    }
  }
  co_return true;
}

HttpRequest SocketConnection::take_header(Parser& parser) const {
  const auto& message = parser.get();
  HttpRequest request;
  request.method = std::string(message.method_string());
  request.peer = peer_;
  const auto target = message.target();
  if (!decode_target({target.data(), target.size()}, &request.path)) request.path.clear();
  for (const auto& field : message) {
    const auto name = field.name_string();
    const auto value = field.value();
    request.headers.emplace_back(lower_case({name.data(), name.size()}), std::string(value.data(), value.size()));
  }
  return request;
}

std::optional<HttpResponse> SocketConnection::check_header(const HttpRequest& request) const {
  HttpHandler& handler = *host_.handler;
  const std::string_view expect = request.header("expect");
  if (!expect.empty() && !equals_ignoring_case(expect, "100-continue")) {
    return handler.error(417, "the only expectation that can be met is 100-continue", &request);
  }
  if (host_.draining && !handler.is_probe(request)) return handler.error(503, "the server is shutting down", &request);
  if (place_ != Place::kWhole && !handler.is_probe(request)) {
    if (place_ == Place::kAdmin) {
      return handler.error(404, "this port answers /health, /ready and /metrics only", &request);
    }
    return handler.error(503, "too many connections (--max-connections)", &request);
  }
  return handler.refuse(request);
}

// False: the connection is of no more use.
asio::awaitable<bool> SocketConnection::read_body(Parser& parser, HttpRequest* request) {
  const size_t window_bytes =
      host_.limits.body_bytes_per_s * static_cast<size_t>(host_.limits.body_window.count()) / 1000;
  Clock::time_point window_began = Clock::now();
  size_t bytes_before = 0;  // the window
  std::array<char, kReadBytes> chunk;
  std::string& body = request->body;
  while (!parser.is_done()) {
    parser.get().body() = {chunk.data(), chunk.size(), true};
    error_code error;
    feed(parser, error);
    const size_t bytes = chunk.size() - parser.get().body().size;
    if (!request->held.grow(static_cast<int64_t>(bytes))) {
      co_await refuse_and_close(
          host_.handler->error(503, "too much is being asked at the moment; try again later", request));
      co_return false;
    }
    body.append(chunk.data(), bytes);
    if (body.size() - bytes_before >= window_bytes) {
      window_began = Clock::now();
      bytes_before = body.size();
    }
    // Without input the parser neither advances nor asks for more.
    if (error == http::error::need_more || (!error && input_.empty() && !parser.is_done())) {
      if (ended_) co_return false;
      deadline_ = window_began + host_.limits.body_window;
      co_await wait();
    } else if (error && error != http::error::need_buffer) {
      const Refusal refusal = refusal_of(error, host_.limits);
      co_await refuse_and_close(host_.handler->error(refusal.status, refusal.message, request));
      co_return false;
    }
  }
  co_return true;
}

// One request and its answer. False: the connection ends.
asio::awaitable<bool> SocketConnection::serve_one() {
  Parser parser;
  parser.header_limit(static_cast<uint32_t>(host_.limits.header_bytes));
  parser.body_limit(host_.limits.body_bytes);
  const bool has_header = co_await parse_header(parser);
  if (!has_header) co_return false;

  HttpRequest request = take_header(parser);
  const bool is_http11 = parser.get().version() >= 11;
  const AnswerForm form{.chunked = is_http11,
                        .head_only = request.method == "HEAD",
                        .keep_alive = parser.keep_alive() && !host_.draining && place_ != Place::kProbesOnly};
  // Where a peer in front of quire may see another end of the request, nothing behind it is read as one.
  if (const std::string fault = framing_fault(request, is_http11); !fault.empty()) {
    co_await refuse_and_close(host_.handler->error(400, fault, &request));
    co_return false;
  }
  if (std::optional<HttpResponse> refusal = check_header(request)) {
    if (!parser.is_done() || !form.keep_alive || host_.draining || place_ == Place::kProbesOnly) {
      co_await refuse_and_close(std::move(*refusal));
      co_return false;
    }
    std::string bytes = head_text(*refusal, BodyFraming::kLength, true);
    if (!form.head_only) bytes += refusal->body;
    co_return co_await write(std::move(bytes));
  }
  if (!request.header("expect").empty() && !parser.is_done() && input_.empty()) {
    const bool written = co_await write("HTTP/1.1 100 Continue\r\n\r\n");
    if (!written) co_return false;
  }
  parser.eager(true);
  request.held = ByteHold(host_.budget);
  const bool has_body = co_await read_body(parser, &request);
  if (!has_body) co_return false;
  co_return co_await answer(std::move(request), form);
}

asio::awaitable<bool> SocketConnection::answer(HttpRequest request, AnswerForm form) {
  deadline_ = Clock::time_point::max();
  last_output_ = Clock::now();
  const auto pending =
      std::make_shared<PendingAnswer>(std::move(request), form, host_.limits.unsent_bytes, host_.budget, [this] {
        if (answer_ && answer_->overflowed()) abort();
        wake_.cancel();
      });
  answer_ = pending;
  const OpenExchange open_exchange(host_);
  try {
    host_.handler->handle(pending);
  } catch (const std::bad_alloc&) {
    pending->respond(host_.handler->error(503, "out of memory; try again later", &pending->request()));
  }
  bool open = true;
  while (open && !pending->complete()) {
    if (pending->has_output()) {
      open = co_await write(pending->take_output());
      last_output_ = Clock::now();
    } else if (ended_) {
      open = false;
    } else {
      co_await wait();
    }
  }
  answer_.reset();
  pending->client_left();
  co_return open && pending->keep_alive();
}

asio::awaitable<bool> SocketConnection::write(std::string bytes) {
  size_t written = 0;
  while (written < bytes.size()) {
    error_code error;
    const auto rest = asio::buffer(bytes.data() + written, bytes.size() - written);
    const size_t now_written = socket_.write_some(rest, error);
    if (!error) {
      written += now_written;
    } else if (error == asio::error::would_block || error == asio::error::try_again) {
      deadline_ = Clock::now() + host_.limits.write_stall;
      const auto [waited] = co_await socket_.async_wait(tcp::socket::wait_write, kNoThrow);
      if (waited) co_return false;
    } else {
      co_return false;
    }
  }
  deadline_ = Clock::time_point::max();
  co_return true;
}

asio::awaitable<void> SocketConnection::refuse_and_close(HttpResponse response) {
  std::string bytes = head_text(response, BodyFraming::kLength, false) + response.body;
  co_await write(std::move(bytes));
}

// Closing a socket with unread input resets the connection, and the client may never see the last answer. So: no more
// output, then wait a little for the client to close (RFC 9112, 9.6).
asio::awaitable<void> SocketConnection::linger() {
  if (ended_) co_return;
  error_code error;
  socket_.shutdown(tcp::socket::shutdown_send, error);
  discarding_ = true;
  input_.clear();
  room_.cancel();
  deadline_ = Clock::now() + host_.limits.linger;
  while (!ended_) co_await wait();
}

}  // namespace

std::shared_ptr<Connection> Connection::start(asio::io_context& io, int fd, std::string peer, ConnectionHost& host,
                                              Place place, std::function<void(Connection*)> closed) {
  auto connection = std::make_shared<SocketConnection>(io, fd, std::move(peer), host, place);
  connection->start(std::move(closed));
  return connection;
}

}  // namespace quire
