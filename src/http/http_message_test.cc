#include "http/http_message.h"

#include <gtest/gtest.h>

#include <string>

namespace quire {
namespace {

std::string decoded(std::string_view target) {
  std::string path;
  return decode_target(target, &path) ? path : "none";
}

TEST(HttpMessage, DecodesTargets) {
  EXPECT_EQ(decoded("/a%20b/c?x=%zz"), "/a b/c");
  EXPECT_EQ(decoded("/%2Fa#f"), "//a");
  EXPECT_EQ(decoded("http://host:1/a?b"), "/a");
  EXPECT_EQ(decoded("http://host"), "/");
  EXPECT_EQ(decoded("*"), "*");
  for (const char* bad : {"", "a", "/%", "/%4", "/%zz", "/%00", "host:443"}) EXPECT_EQ(decoded(bad), "none") << bad;
}

TEST(HttpMessage, WritesHeads) {
  HttpResponse response{.status = 404, .headers = {{"X-A", "b"}}, .body = "12345"};
  EXPECT_EQ(head_text(response, BodyFraming::kLength, true),
            "HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nX-A: b\r\nContent-Length: 5\r\n"
            "Connection: keep-alive\r\n\r\n");
  response.status = 204;
  response.content_type.clear();
  EXPECT_EQ(head_text(response, BodyFraming::kLength, false),
            "HTTP/1.1 204 No Content\r\nX-A: b\r\nConnection: close\r\n\r\n");
}

TEST(HttpMessage, MakesTextFitForHeaders) {
  EXPECT_EQ(header_safe("a\r\nSet-Cookie: \xc3"), "a??Set-Cookie: ?");
  EXPECT_EQ(header_safe(std::string(500, 'x')).size(), 100u);
}

}  // namespace
}  // namespace quire
