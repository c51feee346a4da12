// The server's log: one JSON object a line, or on a terminal a readable line (server/log_line.h), written by a thread of its own so that a slow disk or pipe holds up no
// answer. Nothing of prompts or answers is in it. Any thread.
//
// At most kMaxWaitingBytes wait to be written; lines beyond that, and lines that a full disk does not take, are lost: the
// next one that is written says how many, and lost() counts them all. What is in the file are whole lines, always.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/status.h"
#include "server/log_line.h"

namespace quire {

class RequestLog {
 public:
  static constexpr size_t kMaxWaitingBytes = 4 << 20;

  // `path`: a file that is appended to; "-": standard error; "none": nothing is written.
  static Result<std::unique_ptr<RequestLog>> open(const std::string& path);
  // Writes what waits, as far as whoever reads takes it within half a second.
  ~RequestLog();

  void write(const RequestRecord& record);
  void note(std::string_view event, std::string_view detail);  // of the server itself: "ready", "draining"
  // Closes the file and opens it again under its name, after it was moved away. On failure goes on with the old one.
  void reopen();
  uint64_t lost() const { return lost_.load(); }  // lines, since the start

  RequestLog(const RequestLog&) = delete;
  RequestLog& operator=(const RequestLog&) = delete;

 private:
  RequestLog(std::string path, int fd);
  void add(std::string line);
  void write_lines();
  void write_batch(const std::vector<std::string>& lines);
  bool write_line(std::string_view line);
  size_t write_some(std::string_view text) const;
  bool wait_for_room() const;
  void lose(uint64_t lines);

  const std::string path_;
  const LogForm form_;
  int fd_;                // -1: off. The writing thread's alone, as are the next two
  bool is_file_ = false;  // can be cut
  std::string rest_;      // of a line that a pipe took in part
  std::mutex mutex_;      // guards what follows
  std::condition_variable changed_;
  std::vector<std::string> waiting_;
  size_t waiting_bytes_ = 0;
  uint64_t dropped_ = 0;  // since the last line that told of it
  bool reopen_ = false;
  std::atomic<int64_t> give_up_ns_{INT64_MAX};  // not INT64_MAX: the log is closing, and at that time ends
  std::atomic<uint64_t> lost_{0};
  std::thread writer_;
};

}  // namespace quire
