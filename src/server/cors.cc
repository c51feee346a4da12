#include "server/cors.h"

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

}  // namespace

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
