// Memory that runs out where a test wants it to. A program that links this has its operator new replaced.
//
// Allocations through malloc alone (C libraries) and memory from mmap are not touched. Thread: each fails only for the thread
// that asks; live_allocations() counts those of all threads.
#pragma once

#include <cstdint>

namespace quire {

// While it lives, an allocation of this thread throws std::bad_alloc: the `k`-th (1: the next), and with `lasting` every one
// after it. One at a time.
class FailingMemory {
 public:
  FailingMemory(int64_t k, bool lasting);
  ~FailingMemory();
  FailingMemory(const FailingMemory&) = delete;
  FailingMemory& operator=(const FailingMemory&) = delete;

  bool failed() const;  // it came to that
};

// What operator new gave out and operator delete did not take back.
int64_t live_allocations();

}  // namespace quire
