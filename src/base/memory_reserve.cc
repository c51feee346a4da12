#include "base/memory_reserve.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

namespace quire {
namespace {

std::atomic<void*> reserve{nullptr};
std::atomic<size_t> reserve_bytes{0};

void give_up_reserve() {
  void* const block = reserve.exchange(nullptr);
  if (block == nullptr) throw std::bad_alloc();
  std::free(block);
}

}  // namespace

void MemoryReserve::install(size_t bytes) {
  reserve_bytes.store(bytes);
  refill();
  std::set_new_handler(give_up_reserve);
}

bool MemoryReserve::refill() {
  if (reserve.load() != nullptr || reserve_bytes.load() == 0) return true;
  void* const block = std::malloc(reserve_bytes.load());
  if (block == nullptr) return false;
  std::memset(block, 1, reserve_bytes.load());  // or the kernel has not given it yet
  void* none = nullptr;
  if (!reserve.compare_exchange_strong(none, block)) std::free(block);
  return true;
}

}  // namespace quire
