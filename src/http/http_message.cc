#include "http/http_message.h"

#include <algorithm>

namespace quire {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = lower(c);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

}  // namespace

std::string_view HttpRequest::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

size_t HttpRequest::count(std::string_view name) const {
  return static_cast<size_t>(
      std::count_if(headers.begin(), headers.end(), [&](const auto& field) { return field.first == name; }));
}

std::string_view reason_phrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "Error";
  }
}

std::string head_text(const HttpResponse& response, BodyFraming framing, bool keep_alive) {
  std::string text = "HTTP/1.1 " + std::to_string(response.status) + ' ';
  text.append(reason_phrase(response.status)).append("\r\n");
  const auto field = [&text](std::string_view name, std::string_view value) {
    text.append(name).append(": ").append(value).append("\r\n");
  };
  if (!response.content_type.empty()) field("Content-Type", response.content_type);
  for (const auto& [name, value] : response.headers) field(name, value);
  if (framing == BodyFraming::kChunked) field("Transfer-Encoding", "chunked");
  // RFC 9110, 8.6: an answer 204 has no length.
  if (framing == BodyFraming::kLength && response.status != 204) {
    field("Content-Length", std::to_string(response.body.size()));
  }
  field("Connection", keep_alive ? "keep-alive" : "close");
  return text.append("\r\n");
}

bool decode_target(std::string_view target, std::string* path) {
  path->clear();
  if (target == "*") {
    path->push_back('*');
    return true;
  }
  if (const size_t scheme = target.find("://"); scheme != std::string_view::npos && !target.starts_with('/')) {
    const size_t slash = target.find('/', scheme + 3);
    target = slash == std::string_view::npos ? std::string_view("/") : target.substr(slash);
  }
  if (!target.starts_with('/')) return false;
  target = target.substr(0, target.find_first_of("?#"));
  for (size_t i = 0; i < target.size(); ++i) {
    if (target[i] != '%') {
      path->push_back(target[i]);
      continue;
    }
    if (i + 2 >= target.size()) return false;
    const int high = hex_digit(target[i + 1]);
    const int low = hex_digit(target[i + 2]);
    if (high < 0 || low < 0 || high + low == 0) return false;
    path->push_back(static_cast<char>(high * 16 + low));
    i += 2;
  }
  return true;
}

std::string framing_fault(const HttpRequest& request, bool is_http11) {
  if (request.path.empty()) return "the request's target is no path";
  const size_t hosts = request.count("host");
  if (hosts > 1 || (is_http11 && hosts == 0)) return "a request has exactly one Host field";
  for (const std::string_view name :
       {"content-length", "transfer-encoding", "authorization", "x-api-key", "origin", "expect"}) {
    if (request.count(name) > 1) return "the request has more than one " + std::string(name) + " field";
  }
  if (request.count("transfer-encoding") > 0) {
    if (!is_http11) return "Transfer-Encoding does not exist in HTTP/1.0";
    if (request.count("content-length") > 0) return "a request has Content-Length or Transfer-Encoding, not both";
    if (!equals_ignoring_case(request.header("transfer-encoding"), "chunked")) {
      return "the only Transfer-Encoding that is read is chunked, alone";
    }
  }
  if (request.count("authorization") > 0 && request.count("x-api-key") > 0) {
    return "a request has Authorization or x-api-key, not both";
  }
  for (const std::string_view name : {"host", "origin"}) {
    if (request.header(name).find('@') != std::string_view::npos) {
      return "the " + std::string(name) + " field names a user, which it may not";
    }
  }
  return {};
}

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

std::string header_safe(std::string_view text) {
  std::string result(text.substr(0, 100));
  std::replace_if(
      result.begin(), result.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return result;
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), lower);
  return result;
}

}  // namespace quire
