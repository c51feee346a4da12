#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace quire {

Result<MappedFile> MappedFile::open(const std::string& path) {
  MappedFile file(path);
  // O_NONBLOCK: a FIFO is to be refused below, not waited for.
  file.fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file.fd_ < 0) {
    const std::string why = std::strerror(errno);
    return errno == ENOENT ? not_found(path + ": no such file") : io_error(path + ": cannot be opened: " + why);
  }
  struct stat info {};
  if (::fstat(file.fd_, &info) != 0 || !S_ISREG(info.st_mode)) {
    return invalid_argument(path + ": is not a regular file");
  }
  file.changed_s_ = info.st_mtim.tv_sec;
  file.changed_ns_ = info.st_mtim.tv_nsec;
  const auto size = static_cast<size_t>(info.st_size);
  if (size == 0) return file;
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd_, 0);
  if (data == MAP_FAILED) return io_error(path + ": cannot be mapped: " + std::strerror(errno));
  file.data_ = static_cast<const std::byte*>(data);
  file.size_ = size;
  file.guard_ = MappingGuard(data, size);
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(changed_s_, other.changed_s_);
  std::swap(changed_ns_, other.changed_ns_);
  std::swap(guard_, other.guard_);
  return *this;
}

MappedFile::~MappedFile() {
  guard_ = MappingGuard();  // first: the addresses may be another mapping's as soon as they are free
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
  if (fd_ >= 0) ::close(fd_);
}

std::string MappedFile::version() const {
  return std::to_string(size_) + " " + std::to_string(changed_s_) + "." + std::to_string(changed_ns_);
}

Status MappedFile::unchanged() const {
  constexpr const char* kWhatToDo = "; start again with the whole file, and replace it by renaming another one over it";
  struct stat info {};
  if (::fstat(fd_, &info) != 0) return io_error(path_ + ": cannot be examined: " + std::strerror(errno));
  if (static_cast<size_t>(info.st_size) < size_) {
    return io_error(path_ + ": was truncated while it was in use, from " + std::to_string(size_) + " bytes to " +
                    std::to_string(info.st_size) + kWhatToDo);
  }
  if (info.st_mtim.tv_sec != changed_s_ || info.st_mtim.tv_nsec != changed_ns_ ||
      static_cast<size_t>(info.st_size) != size_) {
    return io_error(path_ + ": was changed while it was in use" + kWhatToDo);
  }
  // After the size: a read that lacked bytes was before or after that.
  if (guard_.lost()) return io_error(path_ + ": could not be read while it was in use: does its disk fail?");
  return {};
}

}  // namespace quire
