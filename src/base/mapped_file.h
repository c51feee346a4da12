// A file mapped read-only into memory. Movable, unmaps when destroyed; the bytes may be read from any thread.
//
// Another program may truncate or overwrite the file in the meantime, and bytes() then shows other bytes, or zeros where
// there are none any more (base/mapping_guard.h). Whoever makes something of the bytes asks unchanged() afterwards.
// A file that was replaced by another under its name, or removed, stays as it was for those who mapped it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/mapping_guard.h"
#include "base/status.h"

namespace quire {

class MappedFile {
 public:
  // Fails when the path does not exist, is not a regular file, or cannot be mapped; the message names the path.
  static Result<MappedFile> open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }
  // Size and time of the last change when it was opened, "1234 1700000000.123": with the path, what tells it from others.
  std::string version() const;

  // Whether all that was read so far is what the file held when it was opened: it has its size and time of change, and no
  // read failed. The message names the path. Any thread; a system call.
  Status unchanged() const;

 private:
  explicit MappedFile(std::string path) : path_(std::move(path)) {}

  std::string path_;
  int fd_ = -1;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  int64_t changed_s_ = 0;  // time of the last change, and
  int64_t changed_ns_ = 0;
  MappingGuard guard_;
};

}  // namespace quire
