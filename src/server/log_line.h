// The lines of the server's log: JSON for programs, or a readable line for a person at a terminal. Nothing of prompts or
// answers is in them. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace quire {

struct RequestRecord {
  std::string request_id = {};     // X-Request-Id
  std::string generation_id = {};  // the answer's id, as /v1/requests/{id}/trace takes it; empty: no generation
  std::string method = {};
  std::string path = {};
  std::string peer = {};
  int status = 0;  // 499: the client left before the answer
  std::string error_code = {};
  double duration_ms = 0;
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t completion_tokens = 0;
  double queued_ms = 0;
  double ttft_ms = 0;
};

enum class LogForm { kJson, kPeople };

// Of a request that has ended at `ms` since the epoch, without the end of the line. What clients chose is cut, and control
// characters in it are shown, not obeyed.
std::string request_line(LogForm form, int64_t ms, const RequestRecord& record);
// Of the server itself: "ready", "draining".
std::string event_line(LogForm form, int64_t ms, std::string_view event, std::string_view detail);
// Says at the end of a line that so many before it could not be written.
void add_loss(LogForm form, uint64_t lines, std::string* line);

}  // namespace quire
