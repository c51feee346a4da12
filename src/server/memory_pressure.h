// How near the process is to the end of its memory: of its address space (ulimit -v), its control group or the machine.
// Looked at a few times a second, it lets the server refuse requests before an allocation fails or the kernel kills.
// I/O thread only.
#pragma once

#include <cstdint>

namespace quire {

// Bytes that may still be mapped; INT64_MAX: no limit is set.
int64_t address_space_left();

class MemoryPressure {
 public:
  // Whether less than a reserve is left now.
  bool look();

 private:
  bool pressed_ = false;
};

}  // namespace quire
