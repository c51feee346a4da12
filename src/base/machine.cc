#include "base/machine.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <optional>
#include <vector>

#include "base/cgroup.h"

namespace quire {
namespace {

// Cores of the affinity mask; 1 where the kernel does not tell.
int affinity_cores() {
  // The kernel refuses a mask that is smaller than its own, whose size it tells nowhere else.
  for (size_t sets = 1; sets <= 64; sets *= 2) {
    std::vector<cpu_set_t> mask(sets);
    if (sched_getaffinity(0, sets * sizeof(cpu_set_t), mask.data()) == 0) {
      return std::max(CPU_COUNT_S(sets * sizeof(cpu_set_t), mask.data()), 1);
    }
    if (errno != EINVAL) break;
  }
  return 1;
}

std::optional<int64_t> mem_available_bytes(const std::string& root) {
  std::ifstream file(root + "/proc/meminfo");
  for (std::string name; file >> name;) {
    int64_t kib = 0;
    if (name == "MemAvailable:" && file >> kib) return kib * 1024;
    file.ignore(256, '\n');
  }
  return std::nullopt;
}

}  // namespace

int usable_cores(const std::string& root) {
  const int cores = affinity_cores();
  const std::optional<double> quota = read_cgroup_limits(root).cores;
  if (!quota.has_value() || *quota >= cores) return cores;
  return std::max(static_cast<int>(std::ceil(*quota)), 1);
}

int64_t available_memory_bytes(const std::string& root) {
  const std::optional<int64_t> machine = mem_available_bytes(root);
  const std::optional<int64_t> groups = read_cgroup_limits(root).memory_bytes;
  if (machine.has_value() && groups.has_value()) return std::min(*machine, *groups);
  return groups.has_value() ? *groups : machine.value_or(0);
}

}  // namespace quire
