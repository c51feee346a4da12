#include "base/mapping_guard.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <utility>

#include "base/check.h"

namespace quire {

// Never freed, since the handler may go over it at any time; used again for later mappings.
struct GuardedMapping {
  std::atomic<uintptr_t> begin{0};  // 0: not in use
  std::atomic<uintptr_t> end{0};
  std::atomic<bool> lost{false};
  GuardedMapping* next = nullptr;
};

namespace {

static_assert(std::atomic<uintptr_t>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

std::mutex mutex;  // who adds and removes; the handler goes without
std::atomic<GuardedMapping*> first{nullptr};
struct sigaction before {};  // our handler
uintptr_t page_bytes = 0;

// Async-signal-safe. False: no guarded mapping has this address.
bool give_zeros(uintptr_t address) {
  for (GuardedMapping* mapping = first.load(); mapping != nullptr; mapping = mapping->next) {
    const uintptr_t end = mapping->end.load();
    if (address < mapping->begin.load() || address >= end || mapping->begin.load() == 0) continue;
    mapping->lost.store(true);  // before anybody can read the zeros
    // All that follows too: what lies behind the end of a file would fault page by page.
    const uintptr_t page = address / page_bytes * page_bytes;
    // The bare call: what sanitizers put around mmap() is not made for a handler.
    const long zeros = ::syscall(SYS_mmap, page, end - page, PROT_READ,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return zeros != -1;
  }
  return false;
}

void pass_on(int signal, siginfo_t* info, void* context) {
  const bool from_a_fault = info->si_code > 0;
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(signal, info, context);
  } else if (before.sa_handler == SIG_IGN && !from_a_fault) {
    return;
  } else if (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN) {
    struct sigaction end {};
    end.sa_handler = SIG_DFL;
    ::sigaction(SIGBUS, &end, nullptr);
    if (!from_a_fault) ::raise(signal);  // a fault comes again by itself
  } else {
    before.sa_handler(signal);
  }
}

void on_bus_error(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  const bool file = info->si_code == BUS_ADRERR;  // others: failing memory, a signal that somebody sent
  if (!file || !give_zeros(reinterpret_cast<uintptr_t>(info->si_addr))) pass_on(signal, info, context);
  errno = saved_errno;
}

void install_handler() {
  page_bytes = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigaction(SIGBUS, nullptr, &before);
  QUIRE_CHECK(::sigaction(SIGBUS, &action, nullptr) == 0);
}

}  // namespace

MappingGuard::MappingGuard(const void* data, size_t bytes) {
  const std::lock_guard lock(mutex);
  if (page_bytes == 0) install_handler();
  GuardedMapping* free = first.load();
  while (free != nullptr && free->begin.load() != 0) free = free->next;
  if (free == nullptr) {
    free = new GuardedMapping;
    free->next = first.load();
    first.store(free);
  }
  const auto begin = reinterpret_cast<uintptr_t>(data);
  free->lost.store(false);
  free->end.store((begin + bytes + page_bytes - 1) / page_bytes * page_bytes);
  free->begin.store(begin);
  mapping_ = free;
}

MappingGuard::MappingGuard(MappingGuard&& other) noexcept : mapping_(std::exchange(other.mapping_, nullptr)) {}

MappingGuard& MappingGuard::operator=(MappingGuard&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  return *this;
}

MappingGuard::~MappingGuard() {
  if (mapping_ == nullptr) return;
  const std::lock_guard lock(mutex);
  mapping_->begin.store(0);
  mapping_->end.store(0);
}

bool MappingGuard::lost() const { return mapping_ != nullptr && mapping_->lost.load(); }

}  // namespace quire
