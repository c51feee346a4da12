// A file mapped read-only into memory. Movable, unmaps when destroyed; the bytes may be read from any thread.
// A file that another program truncates while it is mapped ends this program with SIGBUS: do not do that.
#pragma once

#include <cstddef>
#include <span>
#include <string>

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

 private:
  MappedFile(std::string path, const std::byte* data, size_t size);

  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace quire
