// The terminal while a chat runs: pastes are marked ("bracketed"), and during an answer nothing is echoed. Whatever ends the
// program puts it back as it was: the end of the chat, Ctrl-C, SIGTERM, SIGHUP, SIGQUIT; Ctrl-Z does so until the program goes on.
//
// One at a time, on the main thread. Only what is on the terminal changes; the screen stays.
#pragma once

namespace quire {

// Safe in signal handlers; does nothing where no chat runs.
void restore_terminal();

class ChatTerminal {
 public:
  // Standard input and output must be terminals.
  ChatTerminal();
  ~ChatTerminal();
  ChatTerminal(const ChatTerminal&) = delete;
  ChatTerminal& operator=(const ChatTerminal&) = delete;

  // Keys pressed from now on are kept for the next line and not shown amid the answer.
  void hide_input();
  void show_input();

  // What came since the last call: the window has another size, or the program went on after Ctrl-Z and others have written
  // on the screen. A wait for input ends when it comes to that.
  enum class Change { kNone, kWindow, kResumed };
  Change take_change();
};

}  // namespace quire
