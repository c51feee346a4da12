// Bytes as a file with a path, without a disk: parsers map what they read.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace quire {

class MemoryFile {
 public:
  MemoryFile(const uint8_t* bytes, size_t size) : fd_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    valid_ = fd_ >= 0 && ::write(fd_, bytes, size) == static_cast<ssize_t>(size);
  }
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  bool valid() const { return valid_; }
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
  bool valid_ = false;
};

}  // namespace quire
