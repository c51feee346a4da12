#include "cli/command_line.h"

int main(int argc, char** argv) { return quire::run_command_line(argc, argv); }
