#include "http/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>
#include <memory>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

#include "http/connection.h"

namespace quire {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr auto kNoThrow = asio::as_tuple(asio::use_awaitable);
constexpr auto kTick = std::chrono::milliseconds(250);
constexpr auto kAcceptPause = std::chrono::milliseconds(200);
// Connections beyond the limit, for probes and to say that there are too many; what comes on top is closed without a word.
constexpr size_t kProbePlaces = 64;

using Stream = asio::generic::stream_protocol;
using Acceptor = asio::basic_socket_acceptor<Stream>;

constexpr std::string_view kUnixPrefix = "unix:";

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

// One address that is listened on.
class Listener {
 public:
  Listener(asio::io_context& io, Place place) : acceptor_(io), place_(place) {}
  ~Listener() { close(); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  Status listen(const ListenAddress& address) {
    if (address.is_unix()) return listen_on_path(address.host.substr(kUnixPrefix.size()), address.socket_mode);
    QUIRE_ASSIGN_OR_RETURN(const tcp::endpoint endpoint, resolve(address.host, address.port));
    const error_code error = open(endpoint);
    if (!error) return {};
    const std::string where = address.host + ":" + std::to_string(address.port);
    if (error == asio::error::address_in_use) {
      return io_error(where + " is taken: another program listens there; end it, or choose another --port");
    }
    return io_error("cannot listen on " + where + ": " + error.message());
  }

  uint16_t port() const {
    error_code error;
    const Stream::endpoint local = acceptor_.local_endpoint(error);
    if (error) return 0;
    const auto* address = reinterpret_cast<const sockaddr*>(local.data());
    if (address->sa_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in*>(address)->sin_port);
    if (address->sa_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6*>(address)->sin6_port);
    return 0;
  }

  void close() {
    error_code ignored;
    acceptor_.close(ignored);
    if (!path_.empty()) ::unlink(path_.c_str());
    path_.clear();
  }

  Acceptor& acceptor() { return acceptor_; }
  Place place() const { return place_; }

 private:
  error_code open(const Stream::endpoint& endpoint) {
    error_code error;
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    return error;
  }

  // A socket that nobody listens on any more is in the way of a new one, and is removed.
  Status listen_on_path(const std::string& path, uint32_t mode) {
    using Local = asio::local::stream_protocol;
    if (path.empty() || path.size() >= sizeof(sockaddr_un::sun_path)) {
      return invalid_argument("--host unix:" + path + ": the path of a socket has 1 to " +
                              std::to_string(sizeof(sockaddr_un::sun_path) - 1) + " bytes");
    }
    struct stat there {};
    if (::lstat(path.c_str(), &there) == 0) {
      if (!S_ISSOCK(there.st_mode)) return io_error(path + " exists and is no socket; choose another --host unix:PATH");
      asio::io_context io;
      Local::socket probe(io);
      error_code error;
      probe.connect(Local::endpoint(path), error);
      if (!error) return io_error(path + " is taken: another program listens there; end it, or choose another path");
      ::unlink(path.c_str());
    }
    const mode_t old_mask = ::umask(0777);  // nobody connects before it has its permissions
    const error_code error = open(Local::endpoint(path));
    ::umask(old_mask);
    if (error) return io_error("cannot listen on " + path + ": " + error.message());
    path_ = path;
    if (::chmod(path.c_str(), mode) != 0) return io_error("cannot set the permissions of " + path);
    return {};
  }

  Acceptor acceptor_;
  Place place_;
  std::string path_;  // of the socket's file; empty: there is none
};

class AsioServer : public HttpServer {
 public:
  explicit AsioServer(HttpLimits limits) : ticker_(io_), signals_(io_) { host_.limits = limits; }

  Status listen(const ListenAddress& address, Place place) {
    auto listener = std::make_unique<Listener>(io_, place);
    QUIRE_RETURN_IF_ERROR(listener->listen(address));
    listeners_.push_back(std::move(listener));
    return {};
  }

  uint16_t port() const override { return listeners_.front()->port(); }
  uint16_t admin_port() const override { return listeners_.size() < 2 ? 0 : listeners_.back()->port(); }

  void run(HttpHandler& handler, ByteBudget& budget) override {
    host_.handler = &handler;
    host_.budget = &budget;
    for (const auto& listener : listeners_) {
      asio::co_spawn(
          io_, [this, &listener] { return accept_all(*listener); }, asio::detached);
    }
    asio::co_spawn(
        io_, [this] { return tick_always(); }, asio::detached);
    error_code ignored;
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) signals_.add(number, ignored);
    asio::co_spawn(
        io_, [this] { return take_signals(); }, asio::detached);
    while (!io_.stopped()) {
      try {
        io_.run();
      } catch (const std::bad_alloc&) {
        // Of one task, which is lost; the others go on.
      }
    }
  }

  void post(std::function<void()> task) override { asio::post(io_, std::move(task)); }

  void drain() override {
    host_.draining = true;
    for (const auto& listener : listeners_) {
      if (listener->place() == Place::kWhole) listener->close();
    }
    for (const auto& [key, connection] : connections_) connection->drain();
  }

  void stop() override {
    drain();
    for (const auto& listener : listeners_) listener->close();
    signals_.cancel();
    for (const auto& [key, connection] : connections_) connection->close();
    stopping_ = true;
    // One more round, in which the coroutines of the closed connections come to their end.
    asio::post(io_, [this] { asio::post(io_, [this] { io_.stop(); }); });
  }

  size_t connections() const override { return connections_.size(); }
  size_t refused_connections() const override { return refused_; }
  size_t evicted_connections() const override { return evicted_; }
  size_t open_exchanges() const override { return host_.open_exchanges; }

 private:
  asio::awaitable<void> accept_all(Listener& listener) {
    while (listener.acceptor().is_open()) {
      auto [error, socket] = co_await listener.acceptor().async_accept(kNoThrow);
      if (!error) {
        take(std::move(socket), listener.place());
      } else if (error != asio::error::operation_aborted && error != asio::error::connection_aborted) {
        // No descriptors or memory left (EMFILE, ENFILE, ENOBUFS): connections wait in the backlog until there are.
        asio::steady_timer pause(io_, kAcceptPause);
        co_await pause.async_wait(kNoThrow);
      }
    }
  }

  void take(Stream::socket socket, Place place) {
    error_code error;
    const Stream::endpoint remote = socket.remote_endpoint(error);
    const std::string peer = error ? std::string() : address_of(remote);
    if (place == Place::kWhole && !find_place(peer)) {
      ++refused_;
      place = Place::kProbesOnly;
    }
    const size_t beside = connections_.size() - whole_;
    if (place != Place::kWhole && beside >= kProbePlaces && !evict(place)) return;
    const int fd = socket.release(error);
    if (error) return;
    try {
      auto connection = Connection::start(io_, fd, peer, host_, place, [this](Connection* closed) { forget(closed); });
      Connection* const key = connection.get();
      connections_.emplace(key, std::move(connection));
      if (place == Place::kWhole) ++whole_;
      if (!peer.empty()) ++of_address_[peer];
    } catch (const std::bad_alloc&) {
      // The client sees its connection end.
    }
  }

  // Does nothing for one that is forgotten already.
  void forget(Connection* closed) {
    const auto found = connections_.find(closed);
    if (found == connections_.end()) return;
    if (closed->place() == Place::kWhole) --whole_;
    const auto own = of_address_.find(closed->peer());
    if (own != of_address_.end() && --own->second == 0) of_address_.erase(own);
    connections_.erase(found);
  }

  // Whether there is a place for one more, after an idle connection gave way where there was none.
  bool find_place(const std::string& peer) {
    const HttpLimits& limits = host_.limits;
    const auto own = of_address_.find(peer);
    if (limits.connections_of_address > 0 && own != of_address_.end() && own->second >= limits.connections_of_address) {
      return false;
    }
    return whole_ < limits.connections || evict(Place::kWhole);
  }

  // Ends the connection in such a place that has been idle longest. False: none is idle.
  bool evict(Place place) {
    std::shared_ptr<Connection> idlest;
    for (const auto& [key, connection] : connections_) {
      if (connection->place() != place || !connection->idle_since()) continue;
      if (idlest == nullptr || *connection->idle_since() < *idlest->idle_since()) idlest = connection;
    }
    if (idlest == nullptr) return false;
    ++evicted_;
    forget(idlest.get());  // now, or the next one would choose it again
    idlest->close();
    return true;
  }

  static std::string address_of(const Stream::endpoint& endpoint) {
    char text[INET6_ADDRSTRLEN] = "";
    const auto* address = reinterpret_cast<const sockaddr*>(endpoint.data());
    if (address->sa_family == AF_INET) {
      ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text, sizeof text);
    } else if (address->sa_family == AF_INET6) {
      ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, text, sizeof text);
    }
    return text;
  }

  asio::awaitable<void> tick_always() {
    while (!stopping_) {
      ticker_.expires_after(kTick);
      co_await ticker_.async_wait(kNoThrow);
      try {
        tick();
      } catch (const std::bad_alloc&) {
        // The next one will do what this one did not.
      }
    }
  }

  void tick() {
    const auto now = Connection::Clock::now();
    // A tick may close a connection, which leaves the table when its coroutine ends, later.
    for (const auto& [key, connection] : connections_) connection->tick(now);
    host_.handler->tick();
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
  std::unordered_map<std::string, size_t> of_address_;  // connections, by the client's address
  size_t whole_ = 0;                                    // connections with Place::kWhole
  size_t refused_ = 0;
  size_t evicted_ = 0;
  bool stopping_ = false;
  asio::io_context io_{1};
  std::vector<std::unique_ptr<Listener>> listeners_;  // of the API, then of the admin port
  asio::steady_timer ticker_;
  asio::signal_set signals_;
};

}  // namespace

Result<bool> is_loopback(const std::string& host) {
  if (host.starts_with(kUnixPrefix)) return true;
  QUIRE_ASSIGN_OR_RETURN(const tcp::endpoint endpoint, resolve(host, 0));
  return endpoint.address().is_loopback();
}

Result<std::unique_ptr<HttpServer>> HttpServer::bind(const ListenAddress& address,
                                                     const std::optional<ListenAddress>& admin, HttpLimits limits) {
  auto server = std::make_unique<AsioServer>(limits);
  QUIRE_RETURN_IF_ERROR(server->listen(address, Place::kWhole));
  if (admin) QUIRE_RETURN_IF_ERROR(server->listen(*admin, Place::kAdmin));
  return std::unique_ptr<HttpServer>(std::move(server));
}

}  // namespace quire
