// One client's connection: reads requests one after the other, writes their answers in the same order.
//
// Two coroutines on the I/O thread share a connection. One reads whatever arrives, so that a client that leaves is
// noticed while its answer is being made; the other parses, hands requests to the handler and writes.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "server/http_server.h"

namespace boost::asio {
class io_context;
}

namespace quire {

// What all connections of a server share. I/O thread only; outlives them.
struct ConnectionHost {
  HttpHandler* handler = nullptr;
  HttpLimits limits;
  size_t body_bytes_held = 0;  // of requests not yet answered
  size_t open_exchanges = 0;
  bool draining = false;
};

class Connection {
 public:
  using Clock = std::chrono::steady_clock;

  // Takes over the connected socket `fd`; `peer` is its address. `refuse`: only say that there are too many. `closed`
  // is called at the end.
  static std::shared_ptr<Connection> start(boost::asio::io_context& io, int fd, std::string peer, ConnectionHost& host,
                                           bool refuse, std::function<void(Connection*)> closed);
  virtual ~Connection() = default;

  // Ends what took too long; keeps silent streams alive.
  virtual void tick(Clock::time_point now) = 0;
  // Ends the connection once its answer is written; at once where there is none in the making.
  virtual void drain() = 0;
  virtual void close() = 0;
};

}  // namespace quire
