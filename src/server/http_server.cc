#include "server/http_server.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>
#include <unordered_map>
#include <utility>

#include "server/connection.h"

namespace quire {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr auto kNoThrow = asio::as_tuple(asio::use_awaitable);
constexpr auto kTick = std::chrono::milliseconds(250);
constexpr auto kAcceptPause = std::chrono::milliseconds(200);
// Connections beyond the limit that are told so; what comes on top is closed without a word.
constexpr size_t kRefusalsAtOnce = 64;

Result<tcp::endpoint> resolve(const std::string& host, uint16_t port) {
  asio::io_context io;
  tcp::resolver resolver(io);
  error_code error;
  const auto found = resolver.resolve(host, std::to_string(port), tcp::resolver::passive, error);
  if (error || found.empty()) {
    return invalid_argument("--host " + host + " is no address to listen on: " + error.message());
  }
  return found.begin()->endpoint();
}

class AsioServer : public HttpServer {
 public:
  AsioServer(HttpLimits limits) : acceptor_(io_), ticker_(io_), signals_(io_) { host_.limits = limits; }

  Status listen(const tcp::endpoint& endpoint, const std::string& host) {
    error_code error;
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (!error) return {};
    const std::string where = host + ":" + std::to_string(endpoint.port());
    if (error == asio::error::address_in_use) {
      return io_error(where + " is taken: another program listens there; end it, or choose another --port");
    }
    return io_error("cannot listen on " + where + ": " + error.message());
  }

  uint16_t port() const override {
    error_code error;
    return acceptor_.local_endpoint(error).port();
  }

  void run(HttpHandler& handler) override {
    host_.handler = &handler;
    asio::co_spawn(
        io_, [this] { return accept_all(); }, asio::detached);
    asio::co_spawn(
        io_, [this] { return tick_always(); }, asio::detached);
    error_code ignored;
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) signals_.add(number, ignored);
    asio::co_spawn(
        io_, [this] { return take_signals(); }, asio::detached);
    io_.run();
    workers_.stop();
    workers_.join();
  }

  void post(std::function<void()> task) override { asio::post(io_, std::move(task)); }
  void offload(std::function<void()> task) override { asio::post(workers_, std::move(task)); }

  void drain() override {
    host_.draining = true;
    error_code ignored;
    acceptor_.close(ignored);
    for (const auto& [key, connection] : connections_) connection->drain();
  }

  void stop() override {
    drain();
    signals_.cancel();
    for (const auto& [key, connection] : connections_) connection->close();
    stopping_ = true;
    // One more round, in which the coroutines of the closed connections come to their end.
    asio::post(io_, [this] { asio::post(io_, [this] { io_.stop(); }); });
  }

  size_t connections() const override { return connections_.size(); }
  size_t refused_connections() const override { return refused_; }
  size_t open_exchanges() const override { return host_.open_exchanges; }

 private:
  asio::awaitable<void> accept_all() {
    while (acceptor_.is_open()) {
      auto [error, socket] = co_await acceptor_.async_accept(kNoThrow);
      if (!error) {
        take(std::move(socket));
      } else if (error != asio::error::operation_aborted && error != asio::error::connection_aborted) {
        // No descriptors or memory left (EMFILE, ENFILE, ENOBUFS): connections wait in the backlog until there are.
        asio::steady_timer pause(io_, kAcceptPause);
        co_await pause.async_wait(kNoThrow);
      }
    }
  }

  void take(tcp::socket socket) {
    const bool refuse = connections_.size() >= host_.limits.connections;
    if (refuse) ++refused_;
    if (connections_.size() >= host_.limits.connections + kRefusalsAtOnce) return;
    error_code error;
    const tcp::endpoint remote = socket.remote_endpoint(error);
    const std::string peer = error ? std::string() : remote.address().to_string();
    const int fd = socket.release(error);
    if (error) return;
    auto connection =
        Connection::start(io_, fd, peer, host_, refuse, [this](Connection* closed) { connections_.erase(closed); });
    connections_.emplace(connection.get(), connection);
  }

  asio::awaitable<void> tick_always() {
    while (!stopping_) {
      ticker_.expires_after(kTick);
      co_await ticker_.async_wait(kNoThrow);
      const auto now = Connection::Clock::now();
      for (const auto& [key, connection] : connections_) connection->tick(now);
      host_.handler->tick();
    }
  }

  asio::awaitable<void> take_signals() {
    while (!stopping_) {
      const auto [error, number] = co_await signals_.async_wait(kNoThrow);
      if (error) break;
      host_.handler->signalled(number);
    }
  }

  ConnectionHost host_;  // outlives the coroutines that io_ destroys
  std::unordered_map<Connection*, std::shared_ptr<Connection>> connections_;
  size_t refused_ = 0;
  bool stopping_ = false;
  asio::io_context io_{1};
  asio::thread_pool workers_{1};
  tcp::acceptor acceptor_;
  asio::steady_timer ticker_;
  asio::signal_set signals_;
};

}  // namespace

Result<bool> is_loopback(const std::string& host) {
  QUIRE_ASSIGN_OR_RETURN(const tcp::endpoint endpoint, resolve(host, 0));
  return endpoint.address().is_loopback();
}

Result<std::unique_ptr<HttpServer>> HttpServer::bind(const std::string& host, uint16_t port, HttpLimits limits) {
  QUIRE_ASSIGN_OR_RETURN(const tcp::endpoint endpoint, resolve(host, port));
  auto server = std::make_unique<AsioServer>(limits);
  QUIRE_RETURN_IF_ERROR(server->listen(endpoint, host));
  return std::unique_ptr<HttpServer>(std::move(server));
}

}  // namespace quire
