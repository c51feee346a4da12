// Any bytes from a client, in parts of any size, to the connection of the server: every answer is well-formed, none comes
// unasked, and the connection ends once the client has said all. What counts as a request is for a strict reader of RFC 9112
// to say, so bytes that a proxy takes for a body are never answered as a request.
//
// Input: two bytes, how many bytes the client sends at a time (0: all) and what the handler does, then the client's bytes.
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <string>

#include "fuzz/documents.h"
#include "fuzz/http_reader.h"
#include "http/connection.h"

namespace quire {
namespace {

// Answers with what it was sent, whole or as events.
class EchoHandler : public HttpHandler {
 public:
  explicit EchoHandler(bool streams) : streams_(streams) {}

  bool is_probe(const HttpRequest&) override { return false; }
  std::optional<HttpResponse> refuse(const HttpRequest& head) override {
    if (head.path != "/refused") return std::nullopt;
    return error(404, "there is no such thing", &head);
  }
  void handle(std::shared_ptr<HttpExchange> exchange) override {
    ++handled;
    HttpRequest& request = exchange->request();
    fuzz_require(!request.path.empty() && !request.method.empty(), "a request has a method and a path");
    if (!streams_) {
      exchange->respond({.body = std::move(request.body)});
      return;
    }
    exchange->begin_events({.content_type = "text/event-stream"});
    if (!request.body.empty()) exchange->send(request.body);
    exchange->end_events();
  }
  HttpResponse error(int status, std::string message, const HttpRequest*) override {
    return {.status = status, .content_type = "text/plain", .body = std::move(message)};
  }
  void tick() override {}
  void signalled(int) override {}

  size_t handled = 0;

 private:
  bool streams_;
};

class Client {
 public:
  explicit Client(int fd) : fd_(fd) {}
  ~Client() { ::close(fd_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // What the socket takes of `bytes`.
  size_t send(std::string_view bytes) const {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    return sent > 0 ? static_cast<size_t>(sent) : 0;
  }
  void end_output() const { ::shutdown(fd_, SHUT_WR); }
  // Whether anything came.
  bool read() {
    char buffer[16 << 10];
    bool any = false;
    for (ssize_t got; (got = ::recv(fd_, buffer, sizeof buffer, MSG_DONTWAIT)) > 0; any = true)
      received.append(buffer, static_cast<size_t>(got));
    return any;
  }

  std::string received;

 private:
  int fd_;
};

// Sends all and reads what comes, until the connection ends. No clock: each round must move something.
std::string converse(EchoHandler& handler, std::string_view input, size_t at_a_time) {
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) return {};
  boost::asio::io_context io;
  ByteBudget budget(1 << 20);
  ConnectionHost host;
  host.handler = &handler;
  host.budget = &budget;
  host.limits.header_bytes = 4 << 10;
  host.limits.body_bytes = 64 << 10;
  bool closed = false;
  auto connection =
      Connection::start(io, sockets[0], "fuzz", host, Place::kWhole, [&closed](Connection*) { closed = true; });
  Client client(sockets[1]);
  bool said_all = false;
  while (true) {
    io.restart();
    bool moved = io.poll() > 0;
    moved |= client.read();
    if (closed) break;
    if (!input.empty()) {
      const size_t sent = client.send(input.substr(0, at_a_time == 0 ? input.size() : at_a_time));
      input.remove_prefix(sent);
      moved |= sent > 0;
    } else if (!said_all) {
      // All is answered that can be: what waits now waits for more.
      if (moved) continue;
      client.end_output();
      said_all = moved = true;
    }
    fuzz_require(moved, "a connection ends when its client has said all");
  }
  connection.reset();
  io.restart();
  io.poll();
  fuzz_require(host.open_exchanges == 0 && budget.used() == 0, "nothing is counted any more");
  return client.received;
}

}  // namespace
}  // namespace quire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace quire;
  if (size < 2) return 0;
  const std::string_view input(reinterpret_cast<const char*>(bytes) + 2, size - 2);
  EchoHandler handler((bytes[1] & 1) != 0);
  const std::string received = converse(handler, input, bytes[0]);
  const RequestReader asked(input);
  const AnswerReader answers(received, asked.methods());
  fuzz_require(answers.error().empty(), "answers are well-formed: " + answers.error() + "\n" + received);
  fuzz_require(answers.count() <= asked.methods().size(), "no answer is unasked for:\n" + received);
  fuzz_require(handler.handled <= answers.count() || received.empty(), "what was handled is answered");
  return 0;
}
