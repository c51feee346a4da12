#include "server/memory_pressure.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "base/machine.h"

namespace quire {
namespace {

// Less than that is pressure; it ends when half as much more is there, so that it does not flutter.
constexpr int64_t kReserveBytes = 64 << 20;

int64_t mapped_bytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return 0;
  int64_t pages = 0;
  if (std::fscanf(file, "%" SCNd64, &pages) != 1) pages = 0;
  std::fclose(file);
  return pages * sysconf(_SC_PAGESIZE);
}

}  // namespace

int64_t address_space_left() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return INT64_MAX;
  return std::max<int64_t>(0, static_cast<int64_t>(limit.rlim_cur) - mapped_bytes());
}

bool MemoryPressure::look() {
  const int64_t available = available_memory_bytes();
  const int64_t left = std::min(address_space_left(), available > 0 ? available : INT64_MAX);  // 0: nothing tells
  pressed_ = left < (pressed_ ? kReserveBytes * 3 / 2 : kReserveBytes);
  return pressed_;
}

}  // namespace quire
