#include "support/failing_files.h"

#include <sys/types.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>

namespace quire {
namespace {

int64_t calls_left = -1;  // before one fails; negative: none will
FileFault next_fault = FileFault::kFull;
bool was_short = false;
std::string failed;

enum class Verdict { kGoOn, kFail, kShort };

Verdict judge(const char* call, bool can_be_short) {
  if (was_short) {
    was_short = false;
    errno = ENOSPC;
    return Verdict::kFail;
  }
  if (calls_left < 0 || calls_left-- > 0) return Verdict::kGoOn;
  failed = call;
  if (next_fault == FileFault::kShort && can_be_short) {
    was_short = true;
    return Verdict::kShort;
  }
  errno = next_fault == FileFault::kBroken ? EIO : ENOSPC;
  return Verdict::kFail;
}

bool fails(const char* call) { return judge(call, false) == Verdict::kFail; }

}  // namespace

FailingFiles::FailingFiles(int64_t k, FileFault fault) {
  calls_left = k - 1;
  next_fault = fault;
  was_short = false;
  failed.clear();
}
FailingFiles::~FailingFiles() {
  calls_left = -1;
  was_short = false;
}
const std::string& FailingFiles::failed_call() const { return failed; }

}  // namespace quire

// The linker sends calls of X to __wrap_X, and calls of __real_X to X.
extern "C" {

ssize_t __real_write(int fd, const void* bytes, size_t size);
ssize_t __wrap_write(int fd, const void* bytes, size_t size) {
  const auto verdict = quire::judge("write", size > 1);
  return verdict == quire::Verdict::kFail
             ? -1
             : __real_write(fd, bytes, verdict == quire::Verdict::kShort ? size / 2 : size);
}

ssize_t __real_pwrite(int fd, const void* bytes, size_t size, off_t offset);
ssize_t __wrap_pwrite(int fd, const void* bytes, size_t size, off_t offset) {
  const auto verdict = quire::judge("pwrite", size > 1);
  const size_t taken = verdict == quire::Verdict::kShort ? size / 2 : size;
  return verdict == quire::Verdict::kFail ? -1 : __real_pwrite(fd, bytes, taken, offset);
}

size_t __real_fwrite(const void* items, size_t size, size_t count, std::FILE* file);
size_t __wrap_fwrite(const void* items, size_t size, size_t count, std::FILE* file) {
  const auto verdict = quire::judge("fwrite", count > 1);
  if (verdict == quire::Verdict::kFail) return 0;
  return __real_fwrite(items, size, verdict == quire::Verdict::kShort ? count / 2 : count, file);
}

int __real_fflush(std::FILE* file);
int __wrap_fflush(std::FILE* file) { return quire::fails("fflush") ? EOF : __real_fflush(file); }

// No test can see whether bytes reached a disk, and waiting for one takes most of its time.
int __wrap_fsync(int) { return quire::fails("fsync") ? -1 : 0; }

int __real_fallocate(int fd, int mode, off_t offset, off_t bytes);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t bytes) {
  return quire::fails("fallocate") ? -1 : __real_fallocate(fd, mode, offset, bytes);
}

int __real_ftruncate(int fd, off_t bytes);
int __wrap_ftruncate(int fd, off_t bytes) { return quire::fails("ftruncate") ? -1 : __real_ftruncate(fd, bytes); }

int __real_rename(const char* from, const char* to);
int __wrap_rename(const char* from, const char* to) { return quire::fails("rename") ? -1 : __real_rename(from, to); }

int __real_renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags);
int __wrap_renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  return quire::fails("renameat2") ? -1 : __real_renameat2(from_folder, from, to_folder, to, flags);
}

}  // extern "C"
