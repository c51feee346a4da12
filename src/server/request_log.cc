#include "server/request_log.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

namespace quire {
namespace {

constexpr size_t kPieceBytes = 64 << 10;
constexpr int64_t kClosingNs = 500'000'000;

int open_file(const std::string& path) { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640); }

int64_t clock_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

bool is_regular(int fd) {
  struct stat file {};
  return fd >= 0 && ::fstat(fd, &file) == 0 && S_ISREG(file.st_mode);
}

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

RequestLog::RequestLog(std::string path, int fd)
    : path_(std::move(path)),
      form_(fd >= 0 && ::isatty(fd) == 1 ? LogForm::kPeople : LogForm::kJson),
      fd_(fd),
      is_file_(is_regular(fd)) {
  if (fd_ >= 0) writer_ = std::thread([this] { write_lines(); });
}

RequestLog::~RequestLog() {
  {
    const std::lock_guard lock(mutex_);
    give_up_ns_.store(now_ns() + kClosingNs);
  }
  changed_.notify_one();
  if (writer_.joinable()) writer_.join();
  if (fd_ > STDERR_FILENO) ::close(fd_);
}

void RequestLog::write(const RequestRecord& record) {
  if (writer_.joinable()) add(request_line(form_, clock_ms(), record));
}

void RequestLog::note(std::string_view event, std::string_view detail) {
  if (writer_.joinable()) add(event_line(form_, clock_ms(), event, detail));
}

void RequestLog::reopen() {
  const std::lock_guard lock(mutex_);
  reopen_ = true;
  changed_.notify_one();
}

void RequestLog::add(std::string line) {
  const std::lock_guard lock(mutex_);
  if (waiting_bytes_ + line.size() > kMaxWaitingBytes) {
    ++dropped_;
    ++lost_;
    return;
  }
  if (dropped_ > 0) {
    add_loss(form_, dropped_, &line);
    dropped_ = 0;
  }
  waiting_bytes_ += line.size() + 1;
  waiting_.push_back(std::move(line.append("\n")));
  changed_.notify_one();
}

void RequestLog::lose(uint64_t lines) {
  if (lines == 0) return;
  const std::lock_guard lock(mutex_);
  dropped_ += lines;
  lost_ += lines;
}

void RequestLog::write_lines() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return !waiting_.empty() || reopen_ || give_up_ns_.load() != INT64_MAX; });
    const std::vector<std::string> lines = std::exchange(waiting_, {});
    waiting_bytes_ = 0;
    const bool reopen = std::exchange(reopen_, false);
    const bool ending = give_up_ns_.load() != INT64_MAX;
    lock.unlock();
    write_batch(lines);
    if (reopen && path_ != "-") {
      if (const int fd = open_file(path_); fd >= 0) {
        ::close(fd_);
        fd_ = fd;
        is_file_ = is_regular(fd);
        rest_.clear();
      }
    }
    if (ending) return;
    lock.lock();
  }
}

// A log that cannot be written (disk full, closed pipe) must not end the service.
void RequestLog::write_batch(const std::vector<std::string>& lines) {
  std::string joined;
  size_t begin = 0;
  uint64_t lost = 0;
  // Together as far as they go; where they do not, line by line, so that what is there are whole ones.
  while (begin < lines.size()) {
    joined.clear();
    size_t end = begin;
    while (end < lines.size() && joined.size() + lines[end].size() <= kPieceBytes) joined += lines[end++];
    if (end > begin + 1 && write_line(joined)) {
      begin = end;
      continue;
    }
    if (end == begin) end = begin + 1;
    for (; begin < end; ++begin) lost += !write_line(lines[begin]);
  }
  lose(lost);
}

// All of it or nothing; of a pipe's, the rest follows before anything else.
bool RequestLog::write_line(std::string_view line) {
  rest_.erase(0, write_some(rest_));
  if (!rest_.empty()) return false;
  const off_t before = is_file_ ? ::lseek(fd_, 0, SEEK_END) : -1;
  const size_t written = write_some(line);
  if (written == line.size()) return true;
  if (written == 0) return false;
  if (is_file_ && before >= 0 && ::ftruncate(fd_, before) == 0) return false;
  rest_ = line.substr(written);
  return true;
}

// How many bytes were taken.
size_t RequestLog::write_some(std::string_view text) const {
  size_t taken = 0;
  while (taken < text.size() && wait_for_room()) {
    // After poll() a pipe takes as much without blocking.
    const ssize_t written = ::write(fd_, text.data() + taken, std::min<size_t>(text.size() - taken, PIPE_BUF));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    taken += static_cast<size_t>(written);
  }
  return taken;
}

// False: the log is closing, and whoever reads it takes nothing.
bool RequestLog::wait_for_room() const {
  constexpr int kPollMs = 50;
  while (now_ns() < give_up_ns_.load()) {
    pollfd waited = {.fd = fd_, .events = POLLOUT, .revents = 0};
    if (::poll(&waited, 1, kPollMs) > 0) return true;
  }
  return false;
}

}  // namespace quire
