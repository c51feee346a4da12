#include "http/cors.h"

#include <algorithm>

namespace quire {
namespace {

constexpr size_t kMaxEchoedBytes = 2048;

// A list of field names (RFC 9110 tokens).
bool is_name_list(std::string_view text) {
  return !text.empty() && text.size() <= kMaxEchoedBytes && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("!#$%&'*+-.^_`|~, ").find(c) != std::string_view::npos;
  });
}

Status no_origin(std::string_view text, std::string_view why) {
  return invalid_argument("--cors-origin " + std::string(text) + ": " + std::string(why) +
                          "; an origin is SCHEME://HOST or SCHEME://HOST:PORT, such as https://app.example");
}

bool is_scheme(std::string_view text) {
  return !text.empty() && text.front() >= 'a' && text.front() <= 'z' && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
  });
}

bool is_host(std::string_view text) {
  if (text.starts_with('[') && text.ends_with(']')) {
    text = text.substr(1, text.size() - 2);
    return !text.empty() && text.find_first_not_of("0123456789abcdef:.") == std::string_view::npos;
  }
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
  });
}

}  // namespace

Result<std::string> parse_origin(std::string_view text) {
  const std::string origin = lower_case(text);
  if (origin == "null") return origin;
  if (origin == "*") return no_origin(text, "every page of the web is too much to allow");
  const size_t colon = origin.find("://");
  if (colon == std::string::npos || !is_scheme(origin.substr(0, colon))) return no_origin(text, "it has no scheme");
  const std::string scheme = origin.substr(0, colon);
  std::string host = origin.substr(colon + 3);
  if (host.find_first_of("/?#") != std::string::npos) return no_origin(text, "leave out what is behind the host");
  std::string port;
  if (const size_t at = host.rfind(':'); at != std::string::npos && host.find(']', at) == std::string::npos) {
    port = host.substr(at + 1);
    host.resize(at);
    if (port.empty() || port.size() > 5 || port.find_first_not_of("0123456789") != std::string::npos) {
      return no_origin(text, "its port is no number");
    }
  }
  // Browsers write names of other alphabets in ASCII (xn--...).
  if (!is_host(host)) return no_origin(text, "its host is none");
  const bool usual = (scheme == "http" && port == "80") || (scheme == "https" && port == "443");
  return scheme + "://" + host + (port.empty() || usual ? "" : ":" + port);
}

std::vector<std::pair<std::string, std::string>> cors_headers(const HttpRequest& request) {
  return {{"Access-Control-Allow-Origin", std::string(request.header("origin"))},
          {"Access-Control-Expose-Headers", "Retry-After, X-Request-Id, X-Quire-Ignored"},
          {"Vary", "Origin"}};
}

std::vector<std::pair<std::string, std::string>> preflight_headers(const HttpRequest& request) {
  const std::string_view asked = request.header("access-control-request-headers");
  std::vector<std::pair<std::string, std::string>> headers = {
      {"Access-Control-Allow-Methods", "GET, HEAD, POST, OPTIONS"},
      {"Access-Control-Allow-Headers",
       is_name_list(asked) ? std::string(asked) : "Authorization, Content-Type, X-Api-Key, X-Request-Id"},
      {"Access-Control-Max-Age", "7200"},  // the longest that Chromium keeps
      {"Vary", "Access-Control-Request-Headers, Access-Control-Request-Private-Network"}};
  // A page of a public site that asks a server of the home or office network (Private Network Access).
  if (equals_ignoring_case(request.header("access-control-request-private-network"), "true")) {
    headers.emplace_back("Access-Control-Allow-Private-Network", "true");
  }
  return headers;
}

}  // namespace quire
