#include "cli/terminal_mode.h"

#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "base/check.h"
#include "cli/terminal.h"

namespace quire {
namespace {

constexpr std::string_view kMarkPastes = "\x1b[?2004h";
constexpr std::string_view kLeavePastes = "\x1b[?2004l";

// Signal handlers can reach nothing but static storage.
volatile sig_atomic_t is_chatting = 0;
volatile sig_atomic_t window_changed = 0;
volatile sig_atomic_t has_resumed = 0;
termios as_found = {};
bool marks_pastes = false;

void send(std::string_view text) {
  [[maybe_unused]] const ssize_t written = write(STDOUT_FILENO, text.data(), text.size());
}

void set_handler(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(number, &action, nullptr);
}

void raise_by_default(int number) {
  set_handler(number, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, number);
  sigprocmask(SIG_UNBLOCK, &only, nullptr);
  raise(number);
}

void on_window_change(int) { window_changed = 1; }

void on_end(int number) {
  restore_terminal();
  raise_by_default(number);
}

void on_stop(int number) {
  const int saved_errno = errno;
  termios in_use{};
  tcgetattr(STDIN_FILENO, &in_use);
  restore_terminal();
  raise_by_default(number);
  // Here the program goes on, in the foreground.
  set_handler(number, on_stop);
  tcsetattr(STDIN_FILENO, TCSADRAIN, &in_use);
  if (marks_pastes) send(kMarkPastes);
  is_chatting = 1;
  has_resumed = 1;
  errno = saved_errno;
}

}  // namespace

void restore_terminal() {
  if (is_chatting == 0) return;
  is_chatting = 0;
  if (marks_pastes) send(kLeavePastes);
  tcsetattr(STDIN_FILENO, TCSADRAIN, &as_found);
}

ChatTerminal::ChatTerminal() {
  QUIRE_CHECK(is_chatting == 0);
  tcgetattr(STDIN_FILENO, &as_found);
  marks_pastes = obeys_escapes(stdout);
  is_chatting = 1;
  if (marks_pastes) send(kMarkPastes);
  set_handler(SIGWINCH, on_window_change);
  set_handler(SIGTSTP, on_stop);
  set_handler(SIGHUP, on_end);
  set_handler(SIGQUIT, on_end);
}

ChatTerminal::~ChatTerminal() {
  restore_terminal();
  for (const int number : {SIGWINCH, SIGTSTP, SIGHUP, SIGQUIT}) set_handler(number, SIG_DFL);
}

void ChatTerminal::hide_input() {
  termios hidden = as_found;
  hidden.c_lflag &= ~static_cast<tcflag_t>(ECHO | ICANON);
  tcsetattr(STDIN_FILENO, TCSADRAIN, &hidden);
}

void ChatTerminal::show_input() { tcsetattr(STDIN_FILENO, TCSADRAIN, &as_found); }

ChatTerminal::Change ChatTerminal::take_change() {
  const bool resumed = has_resumed != 0;
  const bool window = window_changed != 0;
  has_resumed = 0;
  window_changed = 0;
  return resumed ? Change::kResumed : window ? Change::kWindow : Change::kNone;
}

}  // namespace quire
