// SHA-256 of files as they are written or read.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace quire {

// A new file and the SHA-256 of what was written to it.
class HashedFile {
 public:
  static Result<HashedFile> create(const std::string& path);

  Status write(std::string_view bytes);
  // Bytes on disk, file closed. Returns the digest in lower-case hexadecimal.
  Result<std::string> finish();

  int64_t bytes_written() const { return bytes_written_; }

  HashedFile(HashedFile&&) noexcept;
  ~HashedFile();

 private:
  struct Digest;
  HashedFile(std::string path, int file, std::unique_ptr<Digest> digest);

  std::string path_;
  int file_ = -1;
  int64_t bytes_written_ = 0;
  std::unique_ptr<Digest> digest_;
};

// The digest of bytes in memory.
std::string bytes_sha256(std::string_view bytes);

// The digest of an existing file.
Result<std::string> file_sha256(const std::string& path);

}  // namespace quire
