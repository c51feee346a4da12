#include <csignal>

#include "cli/command_line.h"

int main(int argc, char** argv) {
  // A limit on file sizes (ulimit -f) is then an error of write, which is reported with the file's name.
  std::signal(SIGXFSZ, SIG_IGN);
  return quire::run_command_line(argc, argv);
}
