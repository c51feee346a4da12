#include "support/failing_memory.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace quire {
namespace {

thread_local int64_t allocations_left = -1;  // before one fails; negative: none will
thread_local bool keeps_failing = false;
thread_local bool has_failed = false;
std::atomic<int64_t> live = 0;

bool fails_now() {
  if (allocations_left < 0) return false;
  if (allocations_left > 0) {
    --allocations_left;
    return false;
  }
  if (!keeps_failing) allocations_left = -1;
  return has_failed = true;
}

void* allocate(size_t bytes, size_t alignment) noexcept {
  if (fails_now()) return nullptr;
  const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* memory = alignment <= alignof(std::max_align_t) ? std::malloc(bytes > 0 ? bytes : 1)
                                                        : std::aligned_alloc(alignment, rounded);
  if (memory != nullptr) live.fetch_add(1, std::memory_order_relaxed);
  return memory;
}

void* allocate_or_throw(size_t bytes, size_t alignment) {
  void* memory = allocate(bytes, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void give_back(void* memory) noexcept {
  if (memory == nullptr) return;
  live.fetch_sub(1, std::memory_order_relaxed);
  std::free(memory);
}

}  // namespace

FailingMemory::FailingMemory(int64_t k, bool lasting) {
  allocations_left = k - 1;
  keeps_failing = lasting;
  has_failed = false;
}
FailingMemory::~FailingMemory() { allocations_left = -1; }
bool FailingMemory::failed() const { return has_failed; }

int64_t live_allocations() { return live.load(std::memory_order_relaxed); }

}  // namespace quire

// The other forms of new and delete call these.
void* operator new(size_t bytes) { return quire::allocate_or_throw(bytes, alignof(std::max_align_t)); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return quire::allocate_or_throw(bytes, static_cast<size_t>(alignment));
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return quire::allocate(bytes, alignof(std::max_align_t));
}
void* operator new(size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return quire::allocate(bytes, static_cast<size_t>(alignment));
}
void* operator new[](size_t bytes) { return quire::allocate_or_throw(bytes, alignof(std::max_align_t)); }
void* operator new[](size_t bytes, std::align_val_t alignment) {
  return quire::allocate_or_throw(bytes, static_cast<size_t>(alignment));
}
void operator delete(void* memory) noexcept { quire::give_back(memory); }
void operator delete(void* memory, size_t) noexcept { quire::give_back(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { quire::give_back(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { quire::give_back(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { quire::give_back(memory); }
void operator delete[](void* memory) noexcept { quire::give_back(memory); }
void operator delete[](void* memory, size_t) noexcept { quire::give_back(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { quire::give_back(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { quire::give_back(memory); }
