#include "server/access_policy.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

namespace quire {
namespace {

// The key that a request carries, by either of its fields; empty: none.
std::string_view key_of(const HttpRequest& request) {
  std::string_view value = request.header("authorization");
  if (value.empty()) return request.header("x-api-key");
  constexpr std::string_view kScheme = "Bearer ";
  if (value.size() <= kScheme.size() || !equals_ignoring_case(value.substr(0, kScheme.size()), kScheme)) return {};
  value.remove_prefix(kScheme.size());
  value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
  return value;
}

// "localhost:8000" to "localhost", "[::1]:8000" to "[::1]".
std::string_view without_port(std::string_view authority) {
  if (authority.starts_with('[')) return authority.substr(0, authority.find(']') + 1);
  return authority.substr(0, authority.find(':'));
}

// "http://host:8000" to "host:8000"; empty where there is no host ("null").
std::string_view origin_authority(std::string_view origin) {
  const size_t scheme = origin.find("://");
  return scheme == std::string_view::npos ? std::string_view() : origin.substr(scheme + 3);
}

}  // namespace

AccessPolicy::AccessPolicy(const std::vector<std::string>& keys, bool checks_host, std::string host,
                           std::vector<std::string> origins)
    : checks_host_(checks_host), host_(std::move(host)), origins_(std::move(origins)) {
  for (const std::string& key : keys) digests_.push_back(digest(key));
}

// Digests have one length, so comparing them tells nothing about a key.
AccessPolicy::Digest AccessPolicy::digest(std::string_view key) {
  Digest result{};
  EVP_Digest(key.data(), key.size(), result.data(), nullptr, EVP_sha256(), nullptr);
  return result;
}

bool AccessPolicy::is_local_name(std::string_view authority) const {
  const std::string name = lower_case(without_port(authority));
  return name == "localhost" || name.ends_with(".localhost") || name == "[::1]" || name == lower_case(host_) ||
         (name.starts_with("127.") && name.find_first_not_of("0123456789.") == std::string::npos);
}

bool AccessPolicy::admits_page(const HttpRequest& request) const {
  const std::string_view origin = request.header("origin");
  if (origin.empty()) return false;
  if (std::ranges::find(origins_, lower_case(origin)) != origins_.end()) return true;
  const std::string_view authority = origin_authority(origin);
  // "null" (a file, or a frame without an origin), and what no browser sends.
  if (authority.empty() || authority.find_first_of("@/?#") != std::string_view::npos) return false;
  if (equals_ignoring_case(authority, request.header("host"))) return true;
  if (has_keys() && origins_.empty()) return true;
  return checks_host_ && is_local_name(authority);
}

std::optional<ApiError> AccessPolicy::check(const HttpRequest& request, bool is_open) const {
  if (has_keys()) {
    if (is_open) return std::nullopt;
    const std::string_view token = key_of(request);
    const Digest given = digest(token);
    int matches = 0;
    for (const Digest& known : digests_)
      matches |= CRYPTO_memcmp(known.data(), given.data(), given.size()) == 0 ? 1 : 0;
    if (matches != 0) return std::nullopt;
    return ApiError{
        .status = 401,
        .message = token.empty()
                       ? "this server wants an API key: send \"Authorization: Bearer KEY\" or \"x-api-key: KEY\""
                       : "the API key is not one of this server",
        .code = "invalid_api_key"};
  }
  const std::string_view host = request.header("host");
  if (checks_host_ && !host.empty() && !is_local_name(host)) {
    return ApiError{.status = 403,
                    .message = "the Host \"" + std::string(host.substr(0, 100)) +
                               "\" is not this machine; a server without API keys answers local names only",
                    .code = "foreign_host"};
  }
  if (request.count("origin") == 0 || admits_page(request)) return std::nullopt;
  return ApiError{
      .status = 403,
      .message = "the Origin \"" + std::string(request.header("origin").substr(0, 100)) +
                 "\" is another site; start the server with --cors-origin or --api-key to let its pages use it",
      .code = "foreign_origin"};
}

uint64_t AccessPolicy::client_of(const HttpRequest& request) const {
  return has_keys() ? cache_salt(request) : std::hash<std::string>()(request.peer);
}

uint64_t AccessPolicy::cache_salt(const HttpRequest& request) const {
  if (!has_keys()) return 0;
  const Digest given = digest(key_of(request));
  uint64_t salt = 0;
  std::memcpy(&salt, given.data(), sizeof salt);
  return salt;
}

}  // namespace quire
