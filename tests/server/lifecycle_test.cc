// Loading, failing, full queues, and shutting down.
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

TEST(Lifecycle, StopsAtOnceWhenToldTwice) {
  RunningServer server;
  RawClient client(server.port());
  client.send(post(kCompletions, R"({"prompt":"hang"})"));
  ASSERT_TRUE(server.engine_has(1));
  server.shut_down();
  server.shut_down();
  EXPECT_EQ(server.wait().code(), StatusCode::kCancelled);
}

TEST(Lifecycle, NamesAPortThatIsTaken) {
  RunningServer server;
  ServerOptions options;
  options.port = server.port();
  const auto second = Server::bind(options);
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.status().message().find("is taken"), std::string::npos) << second.status().message();
}

TEST(Lifecycle, WantsAKeyWhereOthersCanReachIt) {
  ServerOptions options;
  options.host = "0.0.0.0";
  options.port = 0;
  options.log_file = "none";
  EXPECT_FALSE(Server::bind(options).ok());
  options.insecure = true;
  EXPECT_TRUE(Server::bind(options).ok());
  options.insecure = false;
  options.api_keys = {"k"};
  EXPECT_TRUE(Server::bind(options).ok());
  options.host = "no such host!";
  EXPECT_FALSE(Server::bind(options).ok());
}

}  // namespace
}  // namespace quire
