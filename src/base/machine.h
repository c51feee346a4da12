// What this process may use of the machine: cores and memory, as the kernel, its affinity mask and its control groups
// (base/cgroup.h) say. Thread: any; reads files each time. `root`: the folder that holds proc/ and sys/, for tests.
#pragma once

#include <cstdint>
#include <string>

namespace quire {

// The affinity mask, cut by CPU quotas. A share of a core counts as one, so that a quota of 150 % is used up by 2 threads.
int usable_cores(const std::string& root = "");

// MemAvailable, or what the control groups leave, whichever is less; 0 where nothing tells.
int64_t available_memory_bytes(const std::string& root = "");

}  // namespace quire
