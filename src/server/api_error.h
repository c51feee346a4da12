// What the API answers when it does not do what was asked: OpenAI's error object, and its HTTP status.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "http/http_message.h"

namespace quire {

struct ApiError {
  int status = 400;
  std::string message = {};
  std::string param = {};     // the field at fault; empty: none
  std::string code = {};      // for programs: "context_length_exceeded"; empty: none
  int64_t retry_after_s = 0;  // 429 and 503: when to try again; 0: not said
};

// The status and code that an error of the engine, the tokenizer or a template has for the client.
ApiError api_error_of(const Status& status);

// {"error": {"message", "type", "param", "code"}}
std::string error_json(const ApiError& error);
HttpResponse error_response(const ApiError& error);

}  // namespace quire
