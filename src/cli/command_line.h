// The program: parses the command line, runs the command, prints its error. Returns the exit code: 0; 2 for whatever
// the user can cause; 130 where the user interrupted it.
#pragma once

namespace quire {

int run_command_line(int argc, const char* const* argv);

}  // namespace quire
