#include "server/request_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <utility>

#include "json/json_writer.h"

namespace quire {
namespace {

int open_file(const std::string& path) { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640); }

// "2026-01-02T03:04:05.678Z"
std::string time_text() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[48];
  const size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text + length, sizeof text - length, ".%03dZ", static_cast<int>(ms));
  return text;
}

// Three decimals: microseconds.
double rounded(double ms) { return static_cast<double>(static_cast<int64_t>(ms * 1000.0)) / 1000.0; }

}  // namespace

Result<std::unique_ptr<RequestLog>> RequestLog::open(const std::string& path) {
  int fd = -1;
  if (path == "-") {
    fd = STDERR_FILENO;
  } else if (path != "none") {
    fd = open_file(path);
    if (fd < 0) return io_error("--log-file " + path + " cannot be opened: " + std::strerror(errno));
  }
  return std::unique_ptr<RequestLog>(new RequestLog(path, fd));
}

RequestLog::RequestLog(std::string path, int fd) : path_(std::move(path)), fd_(fd) {
  if (fd_ >= 0) writer_ = std::thread([this] { write_lines(); });
}

RequestLog::~RequestLog() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  if (writer_.joinable()) writer_.join();
  if (fd_ > STDERR_FILENO) ::close(fd_);
}

void RequestLog::write(const RequestRecord& record) {
  if (!writer_.joinable()) return;
  std::string line;
  JsonWriter out(&line);
  out.begin_object().text("time", time_text()).text("event", "request").text("request_id", record.request_id);
  out.text("method", record.method).text("path", record.path).text("peer", record.peer);
  out.number("status", record.status).number("duration_ms", rounded(record.duration_ms));
  if (!record.error_code.empty()) out.text("error", record.error_code);
  if (!record.generation_id.empty()) {
    out.text("id", record.generation_id)
        .number("prompt_tokens", record.prompt_tokens)
        .number("cached_tokens", record.cached_tokens)
        .number("completion_tokens", record.completion_tokens)
        .number("queued_ms", rounded(record.queued_ms))
        .number("ttft_ms", rounded(record.ttft_ms));
  }
  out.end_object();
  add(std::move(line));
}

void RequestLog::note(std::string_view event, std::string_view detail) {
  if (!writer_.joinable()) return;
  std::string line;
  JsonWriter(&line).begin_object().text("time", time_text()).text("event", event).text("detail", detail).end_object();
  add(std::move(line));
}

void RequestLog::reopen() {
  const std::lock_guard lock(mutex_);
  reopen_ = true;
  changed_.notify_one();
}

void RequestLog::add(std::string line) {
  const std::lock_guard lock(mutex_);
  if (waiting_.size() >= kMaxWaiting) {
    ++dropped_;
    return;
  }
  if (dropped_ > 0) {
    line.insert(line.size() - 1, ",\"dropped_lines_before\":" + std::to_string(dropped_));
    dropped_ = 0;
  }
  waiting_.push_back(std::move(line.append("\n")));
  changed_.notify_one();
}

void RequestLog::write_lines() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return !waiting_.empty() || reopen_ || ending_; });
    const std::vector<std::string> lines = std::exchange(waiting_, {});
    const bool reopen = std::exchange(reopen_, false);
    const bool ending = ending_;
    lock.unlock();
    std::string text;
    for (const std::string& line : lines) text += line;
    write_all(text);
    if (reopen && path_ != "-") {
      if (const int fd = open_file(path_); fd >= 0) {
        ::close(fd_);
        fd_ = fd;
      }
    }
    if (ending) return;
    lock.lock();
  }
}

// A log that cannot be written (disk full, closed pipe) must not end the service.
void RequestLog::write_all(std::string_view text) const {
  while (!text.empty()) {
    const ssize_t written = ::write(fd_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace quire
