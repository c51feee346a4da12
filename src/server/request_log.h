// The server's log: one JSON object a line, written by a thread of its own so that a slow disk or pipe holds up no
// answer. Nothing of prompts or answers is in it. Any thread.
//
// At most kMaxWaiting lines wait to be written; beyond that lines are dropped, and the next one that is written says
// how many.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/status.h"

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

class RequestLog {
 public:
  static constexpr size_t kMaxWaiting = 8192;

  // `path`: a file that is appended to; "-": standard error; "none": nothing is written.
  static Result<std::unique_ptr<RequestLog>> open(const std::string& path);
  ~RequestLog();  // writes what waits

  void write(const RequestRecord& record);
  void note(std::string_view event, std::string_view detail);  // of the server itself: "ready", "draining"
  // Closes the file and opens it again under its name, after it was moved away. On failure goes on with the old one.
  void reopen();

  RequestLog(const RequestLog&) = delete;
  RequestLog& operator=(const RequestLog&) = delete;

 private:
  RequestLog(std::string path, int fd);
  void add(std::string line);
  void write_lines();
  void write_all(std::string_view text) const;

  const std::string path_;
  int fd_;            // -1: off. The writing thread's alone
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::vector<std::string> waiting_;
  uint64_t dropped_ = 0;
  bool reopen_ = false;
  bool ending_ = false;
  std::thread writer_;
};

}  // namespace quire
