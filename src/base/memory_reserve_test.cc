#include "base/memory_reserve.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <memory>
#include <new>
#include <vector>

namespace quire {
namespace {

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

// In a process of its own, whose address space ends just behind what it has.
void use_up_memory() {
  MemoryReserve::install(8 << 20);
  rlimit limit{};
  limit.rlim_cur = limit.rlim_max = size_t{256} << 20;
  if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(2);
  std::vector<std::unique_ptr<char[]>> taken;
  taken.reserve(4096);
  bool refused = false;
  try {
    for (;;) taken.push_back(std::make_unique<char[]>(16 << 20));
  } catch (const std::bad_alloc&) {
    refused = true;  // what is larger than the reserve
  }
  if (!refused) _exit(3);
  auto small = std::make_unique<char[]>(4 << 10);  // from what is left, or what the reserve gave
  if (MemoryReserve::refill() && small == nullptr) _exit(4);
  taken.clear();
  _exit(MemoryReserve::refill() ? 0 : 5);
}

TEST(MemoryReserve, LetsSmallAllocationsSucceedWhereLargeOnesFail) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(use_up_memory(), testing::ExitedWithCode(0), "");
}

#endif

}  // namespace
}  // namespace quire
