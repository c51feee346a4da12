#include "http/cors.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

TEST(Cors, ReadsOriginsAsBrowsersWriteThem) {
  const struct {
    const char* given;
    const char* origin;
  } good[] = {
      {"https://app.example", "https://app.example"},
      {"https://App.Example:443", "https://app.example"},
      {"http://app.example:80", "http://app.example"},
      {"http://app.example:443", "http://app.example:443"},
      {"http://[::1]:5173", "http://[::1]:5173"},
      {"http://[::1]", "http://[::1]"},
      {"chrome-extension://abcdef", "chrome-extension://abcdef"},
      {"https://xn--bcher-kva.example", "https://xn--bcher-kva.example"},
      {"null", "null"},
  };
  for (const auto& c : good) {
    const auto origin = parse_origin(c.given);
    ASSERT_TRUE(origin.ok()) << origin.status().message();
    EXPECT_EQ(*origin, c.origin);
  }
  for (const char* bad :
       {"", "*", "app.example", "https://", "https://app.example/", "https://app.example/path", "https://*.example",
        "https://user@app.example", "https://app.example:", "https://app.example:x", "https://app.example:123456",
        "https://b\xC3\xBC"
        "cher.example",
        "https://a b", "://a", "https://[::1", "https://a\r\nX: y"}) {
    const auto origin = parse_origin(bad);
    EXPECT_FALSE(origin.ok()) << bad;
    EXPECT_NE(origin.status().message().find("--cors-origin"), std::string::npos);
  }
}

// What a page asks to send comes back as a header's value: no more than names may be in it.
TEST(Cors, EchoesNamesOnly) {
  const auto allowed = [](const char* asked) {
    HttpRequest request;
    request.headers = {{"access-control-request-headers", asked}};
    for (const auto& [name, value] : preflight_headers(request)) {
      if (name == "Access-Control-Allow-Headers") return value;
    }
    return std::string();
  };
  EXPECT_EQ(allowed("content-type,x-stainless-os"), "content-type,x-stainless-os");
  for (const char* odd : {"", "a: b", "a\"b", "a\x01", "a;b"}) EXPECT_NE(allowed(odd), odd);
  EXPECT_NE(allowed(std::string(5000, 'x').c_str()), std::string(5000, 'x'));
}

}  // namespace
}  // namespace quire
