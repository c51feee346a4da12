// How many tokens a second the server can stream, each an event of its own, when the engine costs nothing.
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "server/server_fixture.h"

namespace quire {
namespace {

constexpr int kConnections = 64;
constexpr int kTokens = 2000;
constexpr double kWantedPerSecond = 20'000;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kInstrumented = true;
#else
constexpr bool kInstrumented = false;
#endif

// Reads every stream to its end and counts events; markers that fall between two reads are seen too.
size_t read_all(const std::vector<std::unique_ptr<RawClient>>& clients) {
  constexpr std::string_view kMarker = "data: {";
  std::vector<pollfd> polls;
  for (const auto& client : clients) polls.push_back({client->fd(), POLLIN, 0});
  std::vector<std::string> tails(clients.size());
  std::vector<char> bytes(256 << 10);
  size_t events = 0;
  size_t open = clients.size();
  while (open > 0) {
    if (::poll(polls.data(), polls.size(), 20'000) <= 0) return events;
    for (size_t i = 0; i < polls.size(); ++i) {
      if ((polls[i].revents & (POLLIN | POLLHUP)) == 0) continue;
      const ssize_t count = ::recv(polls[i].fd, bytes.data(), bytes.size(), 0);
      const std::string text = tails[i] + std::string(bytes.data(), static_cast<size_t>(std::max<ssize_t>(count, 0)));
      events += occurrences(text, std::string(kMarker));
      const bool ended = count <= 0 || text.find("[DONE]") != std::string::npos;
      tails[i] = text.substr(text.size() - std::min(text.size(), kMarker.size() - 1));
      if (ended) {
        polls[i].fd = -1;
        --open;
      }
    }
  }
  return events;
}

struct Measured {
  size_t events = 0;
  double seconds = 0;
  double cpu_seconds = 0;  // of server, engine and clients together
};

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

Measured stream_everything(const RunningServer& server, int tokens) {
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < kConnections; ++i) clients.push_back(std::make_unique<RawClient>(server.port()));
  const auto began = std::chrono::steady_clock::now();
  const double cpu_before = cpu_seconds();
  for (const auto& client : clients) {
    client->send(
        post(kCompletions, "{\"prompt\":\"x\",\"stream\":true,\"max_tokens\":" + std::to_string(tokens) + "}"));
  }
  Measured measured;
  measured.events = read_all(clients);
  measured.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  measured.cpu_seconds = cpu_seconds() - cpu_before;
  return measured;
}

// Judged by processor time, since others may use the machine; the rate that a clock shows is printed.
void expect_rate(std::chrono::microseconds step_time, const char* name) {
  RunningServer server({.step_time = step_time});
  const Measured measured = stream_everything(server, kTokens);
  ASSERT_EQ(measured.events, size_t{kConnections} * (kTokens + 1));  // and one that ends each
  const double events = static_cast<double>(measured.events);
  std::printf("%s: %zu events over %d connections in %.2f s: %.0f a second, %.0f a second of processor time\n", name,
              measured.events, kConnections, measured.seconds, events / measured.seconds,
              events / measured.cpu_seconds);
  if (kInstrumented) return;
  EXPECT_GE(events / measured.cpu_seconds, kWantedPerSecond);
}

TEST(Rate, StreamsAsFastAsTheEngineYields) { expect_rate(std::chrono::microseconds(0), "all at once"); }

// Steps come one by one, so that every event is a write of its own, as with a model.
TEST(Rate, StreamsStepByStep) { expect_rate(std::chrono::microseconds(1000), "step by step"); }

}  // namespace
}  // namespace quire
