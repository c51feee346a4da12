// Loading, failing, full queues, and shutting down.
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "server/server_fixture.h"

namespace quire {
namespace {

const std::string kStream = R"({"prompt":"x","max_tokens":300,"stream":true})";

TEST(Lifecycle, SaysThatItIsLoading) {
  RunningServer server({.state = Engine::State::kLoading});
  EXPECT_EQ(server.ask(get("/health")).status, 200);
  EXPECT_EQ(server.ask(get("/ready")).status, 503);
  const RawAnswer early = server.ask(post(kCompletions, R"({"prompt":"x"})"));
  EXPECT_EQ(early.status, 503);
  EXPECT_NE(early.head.find("Retry-After: 1\r\n"), std::string::npos);
  server.engine().set_state(Engine::State::kReady);
  EXPECT_EQ(server.ask(get("/ready")).status, 200);
  EXPECT_EQ(server.ask(post(kCompletions, R"({"prompt":"x"})")).status, 200);
}

TEST(Lifecycle, EndsWithTheErrorOfLoading) {
  RunningServer server({.state = Engine::State::kFailed});
  const Status status = server.wait();
  EXPECT_EQ(status.code(), StatusCode::kCorrupt);
}

TEST(Lifecycle, TellsWhenToComeBack) {
  RunningServer server({.max_requests = 2});
  RawClient holder(server.port());
  holder.send(post(kCompletions, R"({"prompt":["hang","hang"]})"));
  ASSERT_TRUE(server.engine_has(2));
  const RawAnswer answer = server.ask(post(kCompletions, R"({"prompt":"x"})"));
  EXPECT_EQ(answer.status, 429) << answer.body;
  EXPECT_NE(answer.head.find("Retry-After: 7\r\n"), std::string::npos) << answer.head;
}

TEST(Lifecycle, TakesAllPromptsOfACallOrNone) {
  RunningServer server({.max_requests = 2});
  EXPECT_EQ(server.ask(post(kCompletions, R"({"prompt":["hang","hang","hang"]})")).status, 429);
  EXPECT_TRUE(server.engine_has(0));
}

TEST(Lifecycle, FailsOneRequestOnly) {
  RunningServer server;
  RawClient other(server.port());
  other.send(post(kCompletions, R"({"prompt":"x","max_tokens":2000,"stream":true})"));
  ASSERT_TRUE(other.wait_for("data: "));
  const RawAnswer whole = server.ask(post(kCompletions, R"({"prompt":"fail=3","max_tokens":9})"));
  EXPECT_EQ(whole.status, 500);
  EXPECT_NE(whole.body.find("told to fail"), std::string::npos);
  const RawAnswer early = server.ask(post(kCompletions, R"({"prompt":"fail=0","max_tokens":9,"stream":true})"));
  EXPECT_EQ(early.status, 500);
  ASSERT_TRUE(other.wait_for("[DONE]"));
}

TEST(Lifecycle, TellsLateFailuresInTheStream) {
  RunningServer server({.step_time = std::chrono::milliseconds(20)});
  const RawAnswer late = server.ask(post(kCompletions, R"({"prompt":"fail=3","max_tokens":9,"stream":true})"));
  EXPECT_EQ(late.status, 200);
  EXPECT_NE(late.body.find("data: {\"error\":{\"message\":"), std::string::npos) << late.body;
}

TEST(Lifecycle, FinishesWhatRunsBeforeItEnds) {
  RunningServer server({.step_time = std::chrono::milliseconds(2)});
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 8; ++i) {
    clients.push_back(std::make_unique<RawClient>(server.port()));
    clients.back()->send(post(kCompletions, kStream));
    ASSERT_TRUE(clients.back()->wait_for("data: "));
  }
  RawClient idle(server.port());
  idle.send(get("/health"));
  EXPECT_EQ(idle.answer().status, 200);
  server.shut_down();
  EXPECT_TRUE(idle.closed_within(std::chrono::seconds(5)));
  for (const auto& client : clients) EXPECT_TRUE(client->wait_for("[DONE]"));
  EXPECT_TRUE(server.wait().ok());
  EXPECT_EQ(server.engine().cancelled_requests(), 0);
}

TEST(Lifecycle, StopsAfterTheDrainTime) {
  ServerOptions options;
  options.drain_s = 0.3;
  RunningServer server({}, options);
  RawClient client(server.port());
  client.send(post(kCompletions, R"({"prompt":"hang"})"));
  ASSERT_TRUE(server.engine_has(1));
  server.shut_down();
  EXPECT_EQ(client.answer().status, 503);
  EXPECT_TRUE(server.wait().ok());
  EXPECT_TRUE(server.engine_has(0));
}

TEST(Lifecycle, TellsBalancersBeforeItRefusesConnections) {
  ServerOptions options;
  options.ready_delay_s = 0.6;
  RunningServer server({}, options);
  EXPECT_EQ(server.ask(get("/ready")).status, 200);
  server.shut_down();
  RawAnswer ready = server.ask(get("/ready"));
  for (int i = 0; i < 100 && ready.status == 200; ++i) ready = server.ask(get("/ready"));
  EXPECT_EQ(ready.status, 503) << "while it still listens";
  EXPECT_EQ(ready.body, "{\"status\":\"draining\"}");
  EXPECT_EQ(server.ask(post(kCompletions, R"({"prompt":"x","max_tokens":3})")).status, 200);
  EXPECT_TRUE(server.wait().ok());
}

TEST(Lifecycle, StopsAtOnceWhenToldTwice) {
  std::atomic<int> called = 0;
  ServerOptions options;
  options.on_second_signal = [&called] { ++called; };
  RunningServer server({}, options);
  RawClient client(server.port());
  client.send(post(kCompletions, R"({"prompt":"hang"})"));
  ASSERT_TRUE(server.engine_has(1));
  server.shut_down();
  server.shut_down();
  EXPECT_EQ(server.wait().code(), StatusCode::kCancelled);
  EXPECT_EQ(called, 1) << "whoever started it sees to the end";
}

TEST(Lifecycle, ReportsAStepThatStandsStill) {
  RunningServer server;
  EXPECT_EQ(server.ask(get("/ready")).status, 200);
  server.engine().set_step_seconds(31);
  const auto becomes = [&](int status) {
    return RunningServer::soon([&] { return server.ask(get("/ready")).status == status; });
  };
  EXPECT_TRUE(becomes(503));
  EXPECT_NE(server.ask(get("/metrics")).body.find("\nquire_engine_stalled 1\n"), std::string::npos);
  EXPECT_EQ(server.ask(get("/health")).status, 200);
  server.engine().set_step_seconds(0);
  EXPECT_TRUE(becomes(200));
}

TEST(Lifecycle, AnswersProbesOnAPortOfTheirOwn) {
  ServerOptions options;
  options.admin_port = 0;
  options.limits.connections = 1;
  RunningServer server({}, options);
  RawClient busy(server.port());
  busy.send(post(kCompletions, R"({"prompt":"hang"})"));
  ASSERT_TRUE(server.engine_has(1));
  for (const char* probe : {"/health", "/ready", "/metrics"}) {
    RawClient client(server.admin_port());
    client.send(get(probe));
    EXPECT_EQ(client.answer().status, 200);
  }
  RawClient client(server.admin_port());
  client.send(get("/v1/models"));
  EXPECT_EQ(client.answer().status, 404);
}

TEST(Lifecycle, ListensOnAUnixDomainSocket) {
  const std::string path = testing::TempDir() + "quire-" + std::to_string(::getpid()) + ".socket";
  ServerOptions options;
  options.address = {.host = "unix:" + path, .socket_mode = 0640};
  {
    RunningServer server({}, options);
    struct stat file {};
    ASSERT_EQ(::stat(path.c_str(), &file), 0);
    EXPECT_EQ(file.st_mode & 0777, 0640u);
    RawClient client(path);
    client.send(get("/health"));
    EXPECT_EQ(client.answer().status, 200);
    ServerOptions second = options;
    second.model_names = {"fake"};
    const auto taken = Server::bind(second);
    ASSERT_FALSE(taken.ok());
    EXPECT_NE(taken.status().message().find("is taken"), std::string::npos) << taken.status().message();
  }
  struct stat file {};
  EXPECT_NE(::stat(path.c_str(), &file), 0) << "the file goes with the server";
  std::ofstream(path) << "something";
  EXPECT_FALSE(Server::bind(options).ok()) << "a file of someone else's is left alone";
  ::unlink(path.c_str());
}

TEST(Lifecycle, NamesAPortThatIsTaken) {
  RunningServer server;
  ServerOptions options;
  options.address.port = server.port();
  const auto second = Server::bind(options);
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.status().message().find("is taken"), std::string::npos) << second.status().message();
}

TEST(Lifecycle, WantsAKeyWhereOthersCanReachIt) {
  ServerOptions options;
  options.address.host = "0.0.0.0";
  options.address.port = 0;
  options.log_file = "none";
  EXPECT_FALSE(Server::bind(options).ok());
  options.insecure = true;
  EXPECT_TRUE(Server::bind(options).ok());
  options.insecure = false;
  options.api_keys = {"k"};
  EXPECT_TRUE(Server::bind(options).ok());
  options.address.host = "no such host!";
  EXPECT_FALSE(Server::bind(options).ok());
}

}  // namespace
}  // namespace quire
