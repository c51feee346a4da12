#include "cli/interrupt.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/check.h"
#include "cli/terminal_mode.h"

namespace quire {
namespace {

// Signal handlers can reach nothing but static storage.
volatile sig_atomic_t scope_is_open = 0;
volatile sig_atomic_t interrupt_count = 0;
volatile sig_atomic_t end_is_asked = 0;
// The handler writes to it, so that poll() wakes whichever thread took the signal, and whenever it came.
std::array<int, 2> wake_pipe = {-1, -1};

void on_signal(int number) {
  if (scope_is_open == 0 || interrupt_count > 0) {
    restore_terminal();
    _exit(kInterruptExitCode);
  }
  interrupt_count = 1;
  if (number == SIGTERM) end_is_asked = 1;
  const int saved_errno = errno;
  [[maybe_unused]] const ssize_t written = write(wake_pipe[1], "", 1);  // a full pipe wakes as well
  errno = saved_errno;
}

void forget_interrupt() {
  interrupt_count = 0;
  std::array<char, 16> bytes;
  while (read(wake_pipe[0], bytes.data(), bytes.size()) > 0) {
  }
}

}  // namespace

void exit_on_interrupt() {
  if (wake_pipe[0] < 0) QUIRE_CHECK(pipe2(wake_pipe.data(), O_CLOEXEC | O_NONBLOCK) == 0);
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

// By a timer of the kernel's, which needs no memory and no thread.
void exit_soon_after_interrupt() {
  constexpr suseconds_t kMicroseconds = 700'000;
  struct sigaction action {};
  action.sa_handler = [](int) { _exit(kInterruptExitCode); };
  sigemptyset(&action.sa_mask);
  sigaction(SIGALRM, &action, nullptr);
  itimerval timer{};
  timer.it_value.tv_usec = kMicroseconds;
  setitimer(ITIMER_REAL, &timer, nullptr);
}

InterruptScope::InterruptScope() {
  QUIRE_CHECK(scope_is_open == 0);
  forget_interrupt();
  scope_is_open = 1;
}

InterruptScope::~InterruptScope() { scope_is_open = 0; }

bool InterruptScope::interrupted() const { return interrupt_count > 0; }

bool InterruptScope::end_asked() const { return end_is_asked != 0; }

bool InterruptScope::wait_for_input(int file) const {
  while (true) {
    switch (wait(file, -1)) {
      case Wait::kInput:
        return true;
      case Wait::kInterrupted:
        return false;
      case Wait::kOther:
        break;
    }
  }
}

InterruptScope::Wait InterruptScope::wait(int file, int limit_ms) const {
  std::array<pollfd, 2> waited = {pollfd{.fd = file, .events = POLLIN, .revents = 0},
                                  pollfd{.fd = wake_pipe[0], .events = POLLIN, .revents = 0}};
  if (interrupted()) return Wait::kInterrupted;
  const bool ready = poll(waited.data(), waited.size(), limit_ms) > 0 && waited[0].revents != 0;
  if (interrupted()) return Wait::kInterrupted;
  return ready ? Wait::kInput : Wait::kOther;
}

bool InterruptScope::take() {
  const bool was = interrupt_count > 0;
  if (was) forget_interrupt();
  return was;
}

}  // namespace quire
