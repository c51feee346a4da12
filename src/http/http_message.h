// HTTP requests and answers as the API sees them: plain data without a socket.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/byte_budget.h"

namespace quire {

struct HttpRequest {
  std::string method;                                        // "POST"
  std::string path;                                          // percent-decoded, without the query
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;
  ByteHold held;     // what the body, and what is made of it, counts as
  std::string peer;  // the client's address; empty: it has none (a Unix-domain socket)

  // Frees what was read, once it is of no more use.
  void drop_body() {
    body = {};
    held.release();
  }

  // The value of the first header of that (lower-case) name; empty: none.
  std::string_view header(std::string_view name) const;
  size_t count(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";  // empty: no body is announced
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string body = {};
};

std::string_view reason_phrase(int status);

// How the end of an answer's body is told.
enum class BodyFraming { kLength, kChunked, kUntilClose };

// Status line and header fields, with the empty line that ends them.
std::string head_text(const HttpResponse& response, BodyFraming framing, bool keep_alive);

// "/a%20b?x=1" to "/a b"; "http://host/a" to "/a". False: no such target exists.
bool decode_target(std::string_view target, std::string* path);

// Why the request's header leaves doubt about where the request ends or whom it is for; empty: it does not. After such a
// request the connection must close (RFC 9112, 6.1 and 6.3; RFC 9110, 7.2).
std::string framing_fault(const HttpRequest& request, bool is_http11);

bool equals_ignoring_case(std::string_view a, std::string_view b);
std::string lower_case(std::string_view text);
// At most 100 bytes of `text`, with everything but printable ASCII replaced: fit for the value of a header field.
std::string header_safe(std::string_view text);

}  // namespace quire
