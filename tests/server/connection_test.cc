// What clients do to connections: pipelining, half requests, slow bytes, leaving early, junk.
#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "server/server_fixture.h"

namespace quire {
namespace {

using std::chrono::milliseconds;

const std::string kEndless = R"({"prompt":"x","max_tokens":4000,"ignore_eos":true,"stream":true})";
const std::string kSilent = R"({"prompt":"hang","max_tokens":9,"stream":true})";

ServerOptions with_limits(void (*change)(HttpLimits&)) {
  ServerOptions options;
  change(options.limits);
  return options;
}

TEST(Connection, AnswersPipelinedRequestsInOrder) {
  RunningServer server;
  RawClient client(server.port());
  client.send(post(kCompletions, R"({"prompt":"a","max_tokens":7})") + get("/version") + get("/health"));
  EXPECT_NE(client.answer().body.find("\"completion_tokens\":7"), std::string::npos);
  EXPECT_NE(client.answer().body.find("version"), std::string::npos);
  EXPECT_EQ(client.answer().body, "{\"status\":\"ok\"}");
}

TEST(Connection, StaysOpenAfterErrorsAndStreams) {
  RunningServer server;
  RawClient client(server.port());
  client.send(post(kChat, "{"));
  EXPECT_EQ(client.answer().status, 400);
  client.send(post(kCompletions, R"({"prompt":"a","max_tokens":3,"stream":true})"));
  EXPECT_TRUE(client.answer().body.ends_with("[DONE]\n\n"));
  client.send(get("/nowhere"));
  EXPECT_EQ(client.answer().status, 404);
  client.send(get("/health", "Connection: close\r\n"));
  EXPECT_EQ(client.answer().status, 200);
  EXPECT_TRUE(client.closed_within(milliseconds(5000)));
}

TEST(Connection, ReadsRequestsThatComeByteByByte) {
  RunningServer server;
  RawClient client(server.port());
  for (const char c : post(kCompletions, R"({"prompt":"a","max_tokens":3})")) client.send(std::string_view(&c, 1));
  EXPECT_EQ(client.answer().status, 200);
}

TEST(Connection, ReadsChunkedBodies) {
  RunningServer server;
  RawClient client(server.port());
  client.send(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
      "c\r\n{\"prompt\":\"a\r\n16;x=y\r\n\",\"max_tokens\":3,\"n\":1\r\n1\r\n}\r\n0\r\n\r\n");
  const RawAnswer answer = client.answer();
  EXPECT_EQ(answer.status, 200) << answer.body;
  client.send(get("/health"));
  EXPECT_EQ(client.answer().status, 200);
}

TEST(Connection, ContinuesOnExpectation) {
  RunningServer server;
  const std::string body = R"({"prompt":"a","max_tokens":3})";
  const std::string head =
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: " +
      std::to_string(body.size()) + "\r\n\r\n";
  RawClient client(server.port());
  client.send(head);
  ASSERT_TRUE(client.wait_for("HTTP/1.1 100 Continue\r\n\r\n"));
  client.send(body);
  EXPECT_EQ(client.answer().status, 200);
  client.send("POST /nowhere HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n");
  EXPECT_EQ(client.answer().status, 404);  // and no 100 before it
  EXPECT_EQ(server.ask("POST / HTTP/1.1\r\nHost: localhost\r\nExpect: tea\r\n\r\n").status, 417);
}

TEST(Connection, RefusesJunk) {
  RunningServer server;
  const std::vector<std::pair<std::string, int>> cases = {
      {"\x16\x03\x01\x02\x01\x01\xfc\x03\x03 a TLS hello\r\n\r\n", 400},
      {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400},
      {"GET /health\r\n\r\n", 400},
      {"GET /health HTTP/1.1\r\n\r\n", 400},
      {"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400},
      {"GET /%zz HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
      {"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n", 413},
      {"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(40'000, 'x') + "\r\n\r\n", 431},
      {"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx", 415},
  };
  for (const auto& [bytes, status] : cases) {
    RawClient client(server.port());
    client.send(bytes);
    const RawAnswer answer = client.answer();
    EXPECT_EQ(answer.status, status) << bytes.substr(0, 100) << "\n" << answer.body;
    EXPECT_TRUE(answer.body.starts_with("{\"error\":")) << answer.body;
    client.end_output();
    EXPECT_TRUE(client.closed_within(milliseconds(5000))) << bytes.substr(0, 100);
  }
  EXPECT_EQ(server.ask(get("/health")).status, 200);
}

TEST(Connection, ServesOldClients) {
  RunningServer server;
  RawClient client(server.port());
  const std::string body = R"({"prompt":"a","max_tokens":3,"stream":true})";
  client.send("POST /v1/completions HTTP/1.0\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  const RawAnswer answer = client.answer();
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.head.find("chunked"), std::string::npos);
  EXPECT_TRUE(answer.body.ends_with("[DONE]\n\n")) << answer.body;
}

TEST(Connection, AnswersHeadWithoutABody) {
  RunningServer server;
  RawClient client(server.port());
  client.send("HEAD /health HTTP/1.1\r\nHost: localhost\r\n\r\n" + get("/version"));
  ASSERT_TRUE(client.wait_for("Content-Length: 15\r\n"));
  ASSERT_TRUE(client.wait_for("\r\n\r\nHTTP/1.1 200 OK"));
}

TEST(Connection, EndsSlowHeaders) {
  RunningServer server({}, with_limits([](HttpLimits& limits) { limits.header_time = milliseconds(300); }));
  RawClient client(server.port());
  client.send("GET / HTTP/1.1\r\nHost: loc");
  EXPECT_TRUE(client.closed_within(milliseconds(5000)));
}

TEST(Connection, EndsSlowBodies) {
  RunningServer server({}, with_limits([](HttpLimits& limits) { limits.body_window = milliseconds(300); }));
  RawClient client(server.port());
  client.send("POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{");
  EXPECT_TRUE(client.closed_within(milliseconds(5000)));
}

TEST(Connection, EndsIdleConnections) {
  RunningServer server({}, with_limits([](HttpLimits& limits) {
                         limits.keep_alive = milliseconds(300);
                         limits.header_time = milliseconds(300);
                       }));
  RawClient silent(server.port());
  RawClient used(server.port());
  used.send(get("/health"));
  EXPECT_EQ(used.answer().status, 200);
  EXPECT_TRUE(silent.closed_within(milliseconds(5000)));
  EXPECT_TRUE(used.closed_within(milliseconds(5000)));
}

TEST(Connection, CancelsWhenTheClientLeaves) {
  RunningServer server({.step_time = std::chrono::microseconds(500)});
  for (const bool stream : {true, false}) {
    for (int way = 0; way < 3; ++way) {
      RawClient client(server.port());
      client.send(stream ? post(kCompletions, kEndless) : post(kCompletions, R"({"prompt":"x","max_tokens":4000})"));
      if (stream) {
        ASSERT_TRUE(client.wait_for("data: "));
      }
      ASSERT_TRUE(server.engine_has(1));
      const int64_t before = server.engine().cancelled_requests();
      if (way == 0) client.end_output();
      if (way == 1) client.reset();
      if (way == 2) ::shutdown(client.fd(), SHUT_RDWR);
      EXPECT_TRUE(server.engine_has(0)) << "stream " << stream << ", way " << way;
      EXPECT_EQ(server.engine().cancelled_requests(), before + 1);
    }
  }
}

TEST(Connection, NoticesLeavingBehindAPipelinedRequest) {
  RunningServer server({.step_time = std::chrono::microseconds(500)});
  RawClient client(server.port());
  client.send(post(kCompletions, kEndless) + get("/health"));
  ASSERT_TRUE(client.wait_for("data: "));
  client.end_output();
  EXPECT_TRUE(server.engine_has(0));
  EXPECT_EQ(server.engine().cancelled_requests(), 1);
}

TEST(Connection, DropsClientsThatDoNotRead) {
  // An answer that goes on for 20 s at least, at a rate that a busy machine keeps up too.
  RunningServer server({.context = 1 << 20, .step_time = std::chrono::milliseconds(5), .steps_at_a_time = 256},
                       with_limits([](HttpLimits& limits) { limits.unsent_bytes = 64 << 10; }));
  RawClient client(server.port());
  // Otherwise the kernel takes megabytes for the client, which a busy machine needs long to write.
  const int few_bytes = 4096;
  ASSERT_EQ(setsockopt(client.fd(), SOL_SOCKET, SO_RCVBUF, &few_bytes, sizeof few_bytes), 0);
  client.send(post(kCompletions, R"({"prompt":"x","max_tokens":1000000,"stream":true})"));
  EXPECT_TRUE(server.engine_cancelled(1));
  EXPECT_TRUE(server.engine_has(0));
}

TEST(Connection, SendsHeadAndCommentsIntoSilence) {
  RunningServer server({}, with_limits([](HttpLimits& limits) {
                         limits.head_delay = milliseconds(300);
                         limits.comment_interval = milliseconds(300);
                       }));
  RawClient client(server.port());
  client.send(post(kCompletions, kSilent));
  ASSERT_TRUE(client.wait_for("text/event-stream"));
  ASSERT_TRUE(client.wait_for(": waiting\n\n"));
  ASSERT_TRUE(client.wait_for(": waiting\n\n"));
}

// What the client has sent, with an answer that does not end.
std::unique_ptr<RawClient> busy_client(const RunningServer& server) {
  auto client = std::make_unique<RawClient>(server.port());
  client->send(post(kCompletions, R"({"prompt":"hang"})"));
  return client;
}

TEST(Connection, SaysWhenThereAreTooMany) {
  RunningServer server({}, with_limits([](HttpLimits& limits) { limits.connections = 2; }));
  const auto first = busy_client(server);
  const auto second = busy_client(server);
  ASSERT_TRUE(server.engine_has(2));
  RawClient third(server.port());
  third.send(get("/v1/models"));
  EXPECT_EQ(third.answer().status, 503);
  EXPECT_TRUE(third.closed_within(milliseconds(5000)));
  for (const char* probe : {"/health", "/ready", "/metrics"}) {
    EXPECT_EQ(server.ask(get(probe)).status, 200) << "whoever watches still hears from it";
  }
}

TEST(Connection, GivesThePlaceOfTheIdlestToANewOne) {
  RunningServer server({}, with_limits([](HttpLimits& limits) { limits.connections = 3; }));
  const auto busy = busy_client(server);
  ASSERT_TRUE(server.engine_has(1));
  RawClient idlest(server.port());
  idlest.send(get("/health"));
  EXPECT_EQ(idlest.answer().status, 200);
  RawClient idle(server.port());
  idle.send(get("/health"));
  EXPECT_EQ(idle.answer().status, 200);
  EXPECT_EQ(server.ask(get("/v1/models")).status, 200);
  EXPECT_TRUE(idlest.closed_within(milliseconds(5000)));
  idle.send(get("/health"));
  EXPECT_EQ(idle.answer().status, 200);
  EXPECT_TRUE(server.engine_has(1)) << "who is being answered keeps its place";
}

TEST(Connection, SilentCrowdsShutNobodyOut) {
  RunningServer server({}, with_limits([](HttpLimits& limits) { limits.connections = 64; }));
  std::vector<std::unique_ptr<RawClient>> crowd;
  for (int i = 0; i < 200; ++i) crowd.push_back(std::make_unique<RawClient>(server.port()));
  EXPECT_EQ(server.ask(get("/health")).status, 200);
  EXPECT_EQ(server.ask(post(kCompletions, R"({"prompt":"x","max_tokens":3})")).status, 200);
}

TEST(Connection, LimitsTheConnectionsOfAnAddress) {
  RunningServer server({}, with_limits([](HttpLimits& limits) { limits.connections_of_address = 1; }));
  const auto busy = busy_client(server);
  ASSERT_TRUE(server.engine_has(1));
  EXPECT_EQ(server.ask(get("/v1/models")).status, 503);
  EXPECT_EQ(server.ask(get("/health")).status, 200);
}

// The second request in each body is one that a proxy in front would not have seen.
TEST(Connection, EndsWhereTheEndOfARequestIsInDoubt) {
  RunningServer server;
  const std::string smuggled = get("/v1/models");
  const std::string length = "Content-Length: " + std::to_string(smuggled.size()) + "\r\n";
  const std::vector<std::string> fields = {
      "Transfer-Encoding: xchunked\r\n",
      "Transfer-Encoding: gzip\r\n",
      "Transfer-Encoding: gzip, chunked\r\n",
      "Transfer-Encoding: chunked, gzip\r\n",
      "Transfer-Encoding: chunked, chunked\r\n",
      "Transfer-Encoding: chunked;x=y\r\n",
      "Transfer-Encoding: \r\n",
      "Transfer-Encoding: \"chunked\"\r\n",
      "Transfer-Encoding: identity\r\n",
      "Transfer-Encoding: identity\r\n" + length,
      "Transfer-Encoding: \r\n" + length,
      "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
      "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
      "Transfer-Encoding: chunked\r\n" + length,
      length + length,
      length + "Authorization: Bearer a\r\nAuthorization: Bearer b\r\n",
      length + "Origin: http://localhost\r\nOrigin: http://localhost\r\n",
      length + "Origin: http://127.0.0.1:9@evil.example\r\n",
  };
  for (const std::string& field : fields) {
    RawClient client(server.port());
    client.send("POST /tokenize HTTP/1.1\r\nHost: localhost\r\n" + field + "\r\n" + smuggled);
    EXPECT_EQ(client.answer().status, 400) << field;
    client.end_output();
    EXPECT_TRUE(client.closed_within(milliseconds(5000))) << field;
    EXPECT_EQ(client.received(), "") << field << ": nothing behind it was read as a request";
  }
  for (const char* host : {"localhost@evil", "localhost:80@evil", "a@localhost"}) {
    EXPECT_EQ(server.ask("GET /health HTTP/1.1\r\nHost: " + std::string(host) + "\r\n\r\n").status, 400) << host;
  }
  EXPECT_EQ(server.ask("POST /tokenize HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n").status, 400);
}

TEST(Connection, EndsBodiesThatStopShort) {
  RunningServer server({}, with_limits([](HttpLimits& limits) { limits.body_window = milliseconds(400); }));
  RawClient client(server.port());
  const std::string burst(1 << 20, 'a');
  client.send("POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000000\r\n\r\n" + burst);
  EXPECT_TRUE(client.closed_within(milliseconds(5000))) << "much at first buys no time";
}

TEST(Connection, CountsBodiesUntilTheyAreFreed) {
  RunningServer server({.request_bytes = 4 << 20});
  const std::string head = "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3000000\r\n\r\n";
  {
    RawClient first(server.port());
    first.send(head + std::string(2'500'000, 'a'));
    ASSERT_TRUE(RunningServer::soon([&] {
      return server.ask(get("/metrics")).body.find("\nquire_request_memory_bytes 2500000\n") != std::string::npos;
    }));
    RawClient second(server.port());
    second.send(head + std::string(2'500'000, 'a'));
    EXPECT_EQ(second.answer().status, 503);
  }
  const std::string body = R"({"prompt":")" + std::string(100'000, 'a') + "\"}";
  int status = 503;  // until the server has noticed that the first has left
  for (int i = 0; i < 1000 && status == 503; ++i) status = server.ask(post("/tokenize", body)).status;
  EXPECT_EQ(status, 200);
}

TEST(Connection, RefusesAnswersThereIsNoMemoryFor) {
  RunningServer server({.context = 1 << 20, .request_bytes = 2 << 20});
  const RawAnswer answer = server.ask(post(kCompletions, R"({"prompt":"x","max_tokens":100000,"n":8,"logprobs":20})"));
  EXPECT_EQ(answer.status, 503) << answer.body.substr(0, 200);
  EXPECT_TRUE(server.engine_has(0)) << "what is not wanted any more is cancelled";
  EXPECT_EQ(server.ask(post(kCompletions, R"({"prompt":"x","max_tokens":3})")).status, 200);
  EXPECT_NE(server.ask(get("/metrics")).body.find("\nquire_request_memory_bytes 0\n"), std::string::npos);
}

}  // namespace
}  // namespace quire
