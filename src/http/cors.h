// What lets a browser's page read the answers of another origin: the headers of the Fetch standard's CORS protocol.
// Whether a page may ask at all is AccessPolicy's to say. Pure functions, any thread.
// Sources: the Fetch standard, "HTTP extensions"; RFC 6454, 6 and 7 (origins and how they are written).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "http/http_message.h"

namespace quire {

// An origin as browsers write it, from what an operator wrote: "https://App.example:443" to "https://app.example"; "null".
// Fails on what no browser sends: a path, a user, no scheme, "*".
Result<std::string> parse_origin(std::string_view text);

// For every answer, errors and streams too, to a page that is admitted: its origin by name, so that the answer is not
// good for others.
std::vector<std::pair<std::string, std::string>> cors_headers(const HttpRequest& request);

// For the answer to OPTIONS, beside the above: what the page may send. The fields that it asks for are echoed: whether
// one is read is up to the route.
std::vector<std::pair<std::string, std::string>> preflight_headers(const HttpRequest& request);

}  // namespace quire
