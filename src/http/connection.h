// One client's connection: reads requests one after the other, writes their answers in the same order.
//
// Two coroutines on the I/O thread share a connection. One reads whatever arrives, so that a client that leaves is
// noticed while its answer is being made; the other parses, hands requests to the handler and writes.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "http/http_server.h"

namespace boost::asio {
class io_context;
}

namespace quire {

// What all connections of a server share. I/O thread only; outlives them.
struct ConnectionHost {
  HttpHandler* handler = nullptr;
  HttpLimits limits;
  ByteBudget* budget = nullptr;  // null: bodies and answers have no limit in common
  size_t open_exchanges = 0;
  bool draining = false;
};

// What a connection may ask for.
enum class Place {
  kWhole,       // everything
  kProbesOnly,  // there was no place for it: HttpHandler::is_probe()
  kAdmin,       // the same, on the port that is there for it
};

class Connection {
 public:
  using Clock = std::chrono::steady_clock;

  // Takes over the connected socket `fd`; `peer` is its address. `closed` is called at the end.
  static std::shared_ptr<Connection> start(boost::asio::io_context& io, int fd, std::string peer, ConnectionHost& host,
                                           Place place, std::function<void(Connection*)> closed);
  virtual ~Connection() = default;

  // Ends what took too long; keeps silent streams alive.
  virtual void tick(Clock::time_point now) = 0;
  // Ends the connection once its answer is written; at once where there is none in the making.
  virtual void drain() = 0;
  virtual void close() = 0;

  virtual Place place() const = 0;
  virtual const std::string& peer() const = 0;
  // Since when no request is being read or answered; never: one is.
  virtual std::optional<Clock::time_point> idle_since() const = 0;
};

}  // namespace quire
