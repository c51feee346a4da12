// Keeps the program alive when a mapped file loses its bytes: the kernel answers a read of them with SIGBUS, whose default is
// the end of the program, without a word.
//
// The first guard installs a handler of SIGBUS for the whole process. A fault inside a guarded mapping marks the guard as
// lost, and puts zeros in the place of the page and all that follow it; the read goes on. So whoever reads a mapping must
// ask lost() afterwards, and throw away what was made of the bytes. Any other SIGBUS goes to the handler that was there
// before, or ends the program as it always did. Thread: any; a guard ends before its mapping, which nobody reads any more.
#pragma once

#include <cstddef>

namespace quire {

struct GuardedMapping;

class MappingGuard {
 public:
  MappingGuard() = default;  // guards nothing
  // `data`: a private read-only mapping of `bytes` bytes, as mmap returned it.
  MappingGuard(const void* data, size_t bytes);
  MappingGuard(MappingGuard&& other) noexcept;
  MappingGuard& operator=(MappingGuard&& other) noexcept;
  ~MappingGuard();

  bool lost() const;

 private:
  GuardedMapping* mapping_ = nullptr;
};

}  // namespace quire
