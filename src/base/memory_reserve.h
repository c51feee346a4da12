// A block of memory that is given up when an allocation fails, so that small allocations go on succeeding while whoever
// asked for much is refused: bookkeeping that must not fail half-way (the scheduler's, the cache's) does not.
//
// Works through std::set_new_handler, so there is one for the process. A single allocation that the reserve cannot serve
// still throws std::bad_alloc.
// Thread: any.
#pragma once

#include <cstddef>

namespace quire {

class MemoryReserve {
 public:
  // Takes the reserve and installs the handler; once, at the start of the program.
  static void install(size_t bytes);

  // Takes the reserve again where it was given up. False: there is still no memory for it; let go of something.
  static bool refill();
};

}  // namespace quire
