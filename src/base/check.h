// QUIRE_CHECK stops the program on a broken invariant, that is on a bug of quire itself. It must not be reachable
// from the bytes of a file, flag or network peer: those errors are Status (base/status.h).
#pragma once

#include <cstdio>
#include <cstdlib>

namespace quire::internal {
[[noreturn]] inline void check_failed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: broken invariant: %s (this is a bug in quire)\n", file, line, condition);
  std::abort();
}
}  // namespace quire::internal

#define QUIRE_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::quire::internal::check_failed(__FILE__, __LINE__, #condition))
