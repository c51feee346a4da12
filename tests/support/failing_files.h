// Disks that fail where a test wants them to: a program linked with these wraps (quire_failing_files in tests/CMakeLists.txt)
// has its calls that change files counted, and one of them refused.
//
// Only calls from quire itself are seen, not those within the C and C++ libraries. One thread.
#pragma once

#include <cstdint>
#include <string>

namespace quire {

enum class FileFault {
  kFull,    // ENOSPC
  kBroken,  // EIO
  kShort,   // write() and its kind take half of the bytes, then the disk is full; other calls say ENOSPC
};

// While it lives, the `k`-th call (1: the next) of write, pwrite, fwrite, fflush, fsync, fallocate, ftruncate, rename or
// renameat2 fails, once; after kShort also the next one.
class FailingFiles {
 public:
  FailingFiles(int64_t k, FileFault fault);
  ~FailingFiles();
  FailingFiles(const FailingFiles&) = delete;
  FailingFiles& operator=(const FailingFiles&) = delete;

  const std::string& failed_call() const;  // its name; empty: it did not come to that
};

}  // namespace quire
