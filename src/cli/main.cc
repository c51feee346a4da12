#include <fcntl.h>
#include <unistd.h>

#include <csignal>

#include "cli/command_line.h"

// A file that the program opens later must not become standard output. What is written to a closed one fails, and is said.
static void hold_standard_descriptors() {
  for (int number = STDIN_FILENO; number <= STDERR_FILENO; ++number) {
    if (fcntl(number, F_GETFD) >= 0) continue;
    // The lowest number that is free is this one.
    [[maybe_unused]] const int opened = open("/dev/null", number == STDERR_FILENO ? O_WRONLY : O_RDONLY);
  }
}

int main(int argc, char** argv) {
  hold_standard_descriptors();
  // A limit on file sizes (ulimit -f) is then an error of write, which is reported with the file's name.
  std::signal(SIGXFSZ, SIG_IGN);
  return quire::run_command_line(argc, argv);
}
