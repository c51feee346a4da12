// Ctrl-C. By default it ends the program with exit code 130; within an InterruptScope it is only noted, so that an
// answer can be stopped, or half a download be removed. SIGTERM is treated alike.
#pragma once

namespace quire {

inline constexpr int kInterruptExitCode = 130;

// Installs the default: at the start, and again after others took the signals for a while.
void exit_on_interrupt();

// The program was told twice to end: it ends with exit code 130 within a second, whatever hangs.
void exit_soon_after_interrupt();

// One at a time, on the main thread. A second Ctrl-C before the first was taken ends the program after all: whatever
// should have stopped did not.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  bool interrupted() const;
  // By SIGTERM: it is not an answer that shall stop but the program.
  bool end_asked() const;
  // Waits until `file` can be read or has ended (true), or Ctrl-C was pressed (false), before the call or during it.
  bool wait_for_input(int file) const;
  // The same once, at most so long (-1: no limit). kOther: the time is over, or another signal came.
  enum class Wait { kInput, kInterrupted, kOther };
  Wait wait(int file, int limit_ms) const;
  // Whether Ctrl-C was pressed; forgets it.
  bool take();
};

}  // namespace quire
