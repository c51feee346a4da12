#include "model/packed_part.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

namespace quire {
namespace {

constexpr std::string_view kPartSuffix = ".part";
constexpr std::string_view kSuffix = ".packed";
constexpr time_t kUnlockedAge_s = 3600;          // where locks do not work: no writer pauses for so long
constexpr size_t kWriteBytes = size_t{4} << 20;  // at a time

Status refusal(const std::string& path, const char* what, int error) {
  return io_error(path + ": cannot be " + what + ": " + std::strerror(error));
}

// The PID in "NAME.packed.partPID"; 0: it is another file.
pid_t writer_of(std::string_view name) {
  const size_t at = name.rfind(kPartSuffix);
  if (at == std::string_view::npos || !name.substr(0, at).ends_with(kSuffix)) return 0;
  const std::string_view digits = name.substr(at + kPartSuffix.size());
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), pid);
  return error == std::errc() && end == digits.data() + digits.size() && pid > 0 ? pid : 0;
}

bool is_long_dead(pid_t writer, const struct stat& info) {
  return ::kill(writer, 0) != 0 && errno == ESRCH && std::time(nullptr) - info.st_mtime > kUnlockedAge_s;
}

// Whether nobody writes the file any more; it is locked then, until `fd` is closed.
bool is_abandoned(int fd, pid_t writer) {
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return false;
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
  return errno != EWOULDBLOCK && is_long_dead(writer, info);
}

// Whether `part` still names the file that is open: somebody may have swept it before it was locked.
bool is_still_there(int fd, const std::string& part) {
  struct stat open {};
  struct stat named {};
  return ::fstat(fd, &open) == 0 && ::lstat(part.c_str(), &named) == 0 && open.st_ino == named.st_ino &&
         open.st_dev == named.st_dev;
}

}  // namespace

Result<PackedPart> PackedPart::create(const std::string& path, int64_t bytes) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  if (error) return io_error(folder.string() + ": the folder cannot be made: " + error.message());
  std::string part = path + std::string(kPartSuffix) + std::to_string(::getpid());
  // O_EXCL: in a folder of several containers another process may have the same PID.
  const int fd = ::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return refusal(part, "created", errno);
  const bool locked = ::flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;  // some file systems have no locks
  if (!locked || !is_still_there(fd, part)) {
    ::close(fd);
    return io_error(part + ": another program removes it");
  }
  PackedPart result(path, std::move(part), fd);
  int reserved = 0;
  do {
    reserved = ::fallocate(fd, 0, 0, bytes);
  } while (reserved != 0 && errno == EINTR);
  if (reserved != 0 && errno != EOPNOTSUPP && errno != ENOSYS) return refusal(result.part_, "given its space", errno);
  return result;
}

PackedPart::PackedPart(PackedPart&& other) noexcept
    : path_(std::move(other.path_)), part_(std::move(other.part_)), fd_(std::exchange(other.fd_, -1)) {}

PackedPart::~PackedPart() {
  if (fd_ < 0) return;
  ::unlink(part_.c_str());
  ::close(fd_);
}

Status PackedPart::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd_, bytes.data(), std::min(bytes.size(), kWriteBytes));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return refusal(part_, "written", put < 0 ? errno : ENOSPC);
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
  return {};
}

Status PackedPart::finish() {
  if (::fsync(fd_) != 0) return refusal(part_, "put on the disk", errno);
  if (::rename(part_.c_str(), path_.c_str()) != 0) return refusal(path_, "replaced", errno);
  ::close(std::exchange(fd_, -1));
  return {};
}

void sweep_packed_parts(const std::string& folder) {
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder.empty() ? "." : folder, error), end; !error && it != end;
       it.increment(error)) {
    const pid_t writer = writer_of(it->path().filename().string());
    if (writer == 0) continue;
    const int fd = ::open(it->path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) continue;
    if (is_abandoned(fd, writer)) ::unlink(it->path().c_str());
    ::close(fd);
  }
}

}  // namespace quire
