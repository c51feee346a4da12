#include "cli/jsonl.h"

#include <cstdio>
#include <iostream>
#include <string>

namespace quire {
namespace {

Result<JsonObject> answer_line(const std::string& line, const std::function<Result<JsonObject>(JsonRequest&)>& answer) {
  QUIRE_ASSIGN_OR_RETURN(JsonRequest request, JsonRequest::parse(line));
  return answer(request);
}

}  // namespace

Status answer_lines(const std::function<Result<JsonObject>(JsonRequest&)>& answer) {
  std::string line;
  while (std::getline(std::cin, line)) {
    Result<JsonObject> result = answer_line(line, answer);
    const std::string text =
        result.ok() ? result->line() : JsonObject().text("error", result.status().message()).line();
    if (std::fprintf(stdout, "%s\n", text.c_str()) < 0 || std::fflush(stdout) != 0) {
      return io_error("standard output cannot be written: the remaining requests were not answered");
    }
  }
  return {};
}

}  // namespace quire
