#include "server/api_error.h"

#include <string_view>

#include "json/json_writer.h"

namespace quire {
namespace {

std::string_view type_of(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 429:
      return "rate_limit_error";
    default:
      return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

}  // namespace

ApiError api_error_of(const Status& status) {
  ApiError error{.message = status.message()};
  switch (status.code()) {
    case StatusCode::kInvalidArgument:
    case StatusCode::kUnsupported:
      break;
    case StatusCode::kOutOfRange:
      error.code = "context_length_exceeded";
      break;
    case StatusCode::kDeadlineExceeded:
      error.status = 504;
      error.code = "deadline_exceeded";
      break;
    case StatusCode::kNotFound:
      error.status = 404;
      error.code = "not_found";
      break;
    case StatusCode::kResourceExhausted:
      error.status = 429;
      error.code = "queue_full";
      break;
    case StatusCode::kCancelled:
      error.status = 503;
      error.code = "cancelled";
      break;
    default:
      error.status = 500;
      error.code = "internal_error";
  }
  return error;
}

std::string error_json(const ApiError& error) {
  std::string json;
  JsonWriter writer(&json);
  writer.begin_object().key("error").begin_object();
  writer.text("message", error.message).text("type", type_of(error.status));
  error.param.empty() ? writer.null("param") : writer.text("param", error.param);
  error.code.empty() ? writer.null("code") : writer.text("code", error.code);
  writer.end_object().end_object();
  return json;
}

HttpResponse error_response(const ApiError& error) {
  HttpResponse response{.status = error.status, .body = error_json(error)};
  if (error.retry_after_s > 0) response.headers.emplace_back("Retry-After", std::to_string(error.retry_after_s));
  if (error.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

}  // namespace quire
