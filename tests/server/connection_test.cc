// What clients do to connections: pipelining, half requests, slow bytes, leaving early, junk.
#include <sys/socket.h>

#include <chrono>
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
  RunningServer server({}, with_limits([](HttpLimits& limits) { limits.body_grace = milliseconds(300); }));
  RawClient client(server.port());
  client.send("POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{");
  EXPECT_TRUE(client.closed_within(milliseconds(5000)));
}

TEST(Connection, EndsIdleConnections) {
  RunningServer server({}, with_limits([](HttpLimits& limits) { limits.keep_alive = milliseconds(300); }));
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
  RunningServer server({.context = 1 << 20}, with_limits([](HttpLimits& limits) { limits.unsent_bytes = 64 << 10; }));
  RawClient client(server.port());
  client.send(post(kCompletions, R"({"prompt":"x","max_tokens":200000,"stream":true})"));
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

TEST(Connection, SaysWhenThereAreTooMany) {
  RunningServer server({}, with_limits([](HttpLimits& limits) { limits.connections = 2; }));
  RawClient first(server.port());
  RawClient second(server.port());
  for (RawClient* client : {&first, &second}) {
    client->send(get("/health"));
    EXPECT_EQ(client->answer().status, 200);
  }
  RawClient third(server.port());
  third.send(get("/health"));
  EXPECT_EQ(third.answer().status, 503);
  EXPECT_TRUE(third.closed_within(milliseconds(5000)));
  first.send(get("/health"));
  EXPECT_EQ(first.answer().status, 200);
}

}  // namespace
}  // namespace quire
