#include "cli/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include "base/check.h"

namespace quire {
namespace {

// Signal handlers can reach nothing but static storage.
volatile sig_atomic_t scope_is_open = 0;
volatile sig_atomic_t interrupt_count = 0;

void on_signal(int) {
  if (scope_is_open == 0 || interrupt_count > 0) _exit(kInterruptExitCode);
  interrupt_count = 1;
}

}  // namespace

void exit_on_interrupt() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = 0;  // no SA_RESTART: a read of the terminal must return
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

InterruptScope::InterruptScope() {
  QUIRE_CHECK(scope_is_open == 0);
  interrupt_count = 0;
  scope_is_open = 1;
}

InterruptScope::~InterruptScope() { scope_is_open = 0; }

bool InterruptScope::interrupted() const { return interrupt_count > 0; }

bool InterruptScope::take() {
  const bool was = interrupt_count > 0;
  interrupt_count = 0;
  return was;
}

}  // namespace quire
