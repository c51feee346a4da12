// Who may use the server: API keys, and without them protection against web pages of others.
//
// With keys, a request must carry one ("Authorization: Bearer KEY" or "x-api-key: KEY"); keys are compared in constant
// time. Without keys, a page in the user's browser could reach a server on the loopback: so a Host that names another
// machine (DNS rebinding), or an Origin that is neither local nor in the list of the operator, is refused. With keys pages
// of any site may ask, or with a list only those of the list. Immutable after creation, any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/http_message.h"
#include "server/api_error.h"

namespace quire {

class AccessPolicy {
 public:
  // `checks_host`: the address is of the loopback, so that every honest Host is a local name. `host`: --host.
  // `origins`: --cors-origin, each as parse_origin() gives it (http/cors.h).
  AccessPolicy(const std::vector<std::string>& keys, bool checks_host, std::string host,
               std::vector<std::string> origins = {});

  // `is_open`: the route needs no key.
  std::optional<ApiError> check(const HttpRequest& request, bool is_open) const;
  // Whether a page of the request's Origin may read answers; false where there is none.
  bool admits_page(const HttpRequest& request) const;
  // Prefixes in the cache are shared only among requests of one key. 0 without keys.
  uint64_t cache_salt(const HttpRequest& request) const;
  // Whose turn it is where clients share what there is: the key, or without keys the address.
  uint64_t client_of(const HttpRequest& request) const;
  bool has_keys() const { return !digests_.empty(); }

 private:
  using Digest = std::array<unsigned char, 32>;

  static Digest digest(std::string_view key);
  bool is_local_name(std::string_view authority) const;

  std::vector<Digest> digests_;
  bool checks_host_;
  std::string host_;
  std::vector<std::string> origins_;
};

}  // namespace quire
