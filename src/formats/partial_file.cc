#include "formats/partial_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/check.h"

namespace quire {
namespace {

std::string folder_of(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

std::string room_text(const std::string& path) {
  struct statvfs info {};
  if (::statvfs(folder_of(path).c_str(), &info) != 0) return "";
  const auto free_bytes = static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
  return ", and " + std::to_string(free_bytes) + " are free in " + folder_of(path);
}

// What the operating system's refusal means and what helps.
Status refusal(const std::string& path, const std::string& what, int error, uint64_t bytes) {
  const std::string needs = path + ": " + what + ": the file takes " + std::to_string(bytes) + " bytes";
  switch (error) {
    case ENOSPC:
      return resource_exhausted(needs + room_text(path) + "; make room, or write to another disk");
    case EDQUOT:
      return resource_exhausted(needs + ", more than your disk quota leaves; make room, or write to another disk");
    case EFBIG:
      return resource_exhausted(needs + ", more than the limit on a file's size (ulimit -f) or the file system allows");
    case ENOENT:
      return not_found(path + ": " + what + ": the folder " + folder_of(path) + " does not exist; make it first");
    default:
      return io_error(path + ": " + what + ": " + std::strerror(error));
  }
}

// 0 or the error. File systems that cannot set space aside get the size alone, and a full disk is met later.
int reserve(int fd, uint64_t bytes) {
  if (bytes > static_cast<uint64_t>(INT64_MAX)) return EFBIG;
  int result = 0;
  do {
    result = bytes == 0 ? 0 : ::fallocate(fd, 0, 0, static_cast<off_t>(bytes));
  } while (result != 0 && errno == EINTR);
  if (result == 0) return 0;
  if (errno != EOPNOTSUPP && errno != ENOSYS) return errno;
  return ::ftruncate(fd, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
}

}  // namespace

PartialFile::PartialFile(std::string path, int fd, uint64_t size) : path_(std::move(path)), fd_(fd), size_(size) {}

PartialFile::PartialFile(PartialFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), size_(other.size_) {}

PartialFile& PartialFile::operator=(PartialFile&& other) noexcept {
  if (this != &other) {
    discard();
    path_ = std::move(other.path_);
    fd_ = std::exchange(other.fd_, -1);
    size_ = other.size_;
  }
  return *this;
}

PartialFile::~PartialFile() { discard(); }

void PartialFile::discard() {
  if (fd_ < 0) return;
  // Removed before the lock goes with the descriptor: another program must not find it unlocked.
  ::unlink((path_ + std::string(kPartialSuffix)).c_str());
  ::close(std::exchange(fd_, -1));
}

Result<PartialFile> PartialFile::create(const std::string& path, uint64_t bytes) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) == 0) {
    return invalid_argument(path + ": exists already and is not overwritten; remove it, or name another file");
  }
  const std::string partial = path + std::string(kPartialSuffix);
  const int fd = ::open(partial.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
  if (fd < 0) return refusal(path, "cannot be created", errno, bytes);
  const bool regular = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  if (!regular || ::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    ::close(fd);
    if (!regular) return invalid_argument(partial + ": is in the way and not a regular file; remove it");
    if (error != EWOULDBLOCK) return refusal(path, "cannot be locked", error, bytes);
    return invalid_argument(partial + ": another program is writing this file; wait for it, or name another file");
  }
  PartialFile file(path, fd, bytes);
  if (::ftruncate(fd, 0) != 0) return refusal(path, "cannot be emptied", errno, bytes);
  if (const int error = reserve(fd, bytes); error != 0) return refusal(path, "cannot set space aside", error, bytes);
  return file;
}

Status PartialFile::write(uint64_t offset, std::span<const std::byte> bytes) {
  QUIRE_CHECK(fd_ >= 0 && offset <= size_ && bytes.size() <= size_ - offset);
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    // A short write is followed by one that says why; nothing at all would be one without end.
    if (written <= 0) return refusal(path_, "cannot be written", written < 0 ? errno : ENOSPC, size_);
    bytes = bytes.subspan(static_cast<size_t>(written));
    offset += static_cast<uint64_t>(written);
  }
  return {};
}

Status PartialFile::finish() {
  QUIRE_CHECK(fd_ >= 0);
  if (::fsync(fd_) != 0) return refusal(path_, "cannot be put on the disk", errno, size_);
  QUIRE_RETURN_IF_ERROR(rename_in_place(path_ + std::string(kPartialSuffix), path_));
  ::close(std::exchange(fd_, -1));
  return {};
}

Status write_text_file(const std::string& path, std::string_view text) {
  QUIRE_ASSIGN_OR_RETURN(PartialFile file, PartialFile::create(path, text.size()));
  QUIRE_RETURN_IF_ERROR(file.write(0, std::as_bytes(std::span(text))));
  return file.finish();
}

namespace {

// 0 or the error. Some file systems cannot do this for a folder, and need not.
int sync_folder(const std::string& path) {
  const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return errno;
  const int error = ::fsync(folder) == 0 || errno == EINVAL ? 0 : errno;
  ::close(folder);
  return error;
}

}  // namespace

Status rename_in_place(const std::string& from, const std::string& to) {
  struct stat info {};
  const bool exists = ::lstat(to.c_str(), &info) == 0;
  const bool empty_folder = exists && S_ISDIR(info.st_mode);  // rename() itself refuses one that is not empty
  int result = ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), empty_folder ? 0 : RENAME_NOREPLACE);
  if (result != 0 && (errno == EINVAL || errno == ENOSYS) && !exists) {  // a file system without RENAME_NOREPLACE
    result = ::rename(from.c_str(), to.c_str());
  }
  if (result != 0) {
    const int error = errno;
    if (error == EEXIST || error == ENOTEMPTY) {
      return invalid_argument(to + ": has appeared meanwhile and is not overwritten; what was written is discarded");
    }
    return io_error(from + ": cannot be renamed to " + to + ": " + std::strerror(error));
  }
  const int error = sync_folder(folder_of(to));
  if (error == 0) return {};
  // What failed must not look like what is whole.
  ::rename(to.c_str(), from.c_str());
  return io_error(to + ": its folder cannot be put on the disk: " + std::strerror(error));
}

}  // namespace quire
