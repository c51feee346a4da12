// A file that is being written: it has another name ("model.gguf.partial") until everything is in it and on the disk, so that
// whoever finds a file under its final name finds a whole one. Space is set aside first: a disk that is too small is known
// before hours of work.
//
// Every refusal of the operating system is a Status with the path and what to do. Owner: the writer; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace quire {

inline constexpr std::string_view kPartialSuffix = ".partial";

class PartialFile {
 public:
  // `path` must not exist yet. What a stopped program left under the partial name is overwritten, unless another program
  // is writing it now. Bytes that are never written are zero.
  static Result<PartialFile> create(const std::string& path, uint64_t bytes);

  PartialFile(PartialFile&& other) noexcept;
  PartialFile& operator=(PartialFile&& other) noexcept;
  ~PartialFile();  // removes the file unless it is finished

  Status write(uint64_t offset, std::span<const std::byte> bytes);
  // Puts the bytes on the disk and gives the file its name.
  Status finish();

  const std::string& path() const { return path_; }  // the final one

 private:
  PartialFile(std::string path, int fd, uint64_t size);
  void discard();

  std::string path_;
  int fd_ = -1;  // -1: finished or moved from
  uint64_t size_ = 0;
};

// Writes a small file, under its name only when it is whole.
Status write_text_file(const std::string& path, std::string_view text);

// Renames a file or directory; an existing file or a directory that is not empty is never replaced. Puts the new entry on
// the disk; where that fails the old name stays.
Status rename_in_place(const std::string& from, const std::string& to);

}  // namespace quire
