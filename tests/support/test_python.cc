#include "support/test_python.h"

#include <sys/wait.h>

#include <cstdlib>

namespace quire {
namespace {

std::string interpreter() {
  const char* named = std::getenv("QUIRE_PYTHON");
  return named == nullptr ? "python3" : named;
}

int exit_status(const std::string& command) {
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

std::string no_test_python() {
  if (std::getenv("QUIRE_PYTHON") != nullptr) return {};
  if (exit_status("python3 -c 'import gguf, numpy, safetensors' 2>/dev/null") == 0) return {};
  return "QUIRE_PYTHON is not set, and python3 lacks the packages of tests/requirements.txt";
}

int run_test_python(const std::string& script, const std::vector<std::string>& arguments) {
  std::string command = "'" + interpreter() + "' '" QUIRE_TESTS_DIR "/model/" + script + "'";
  for (const std::string& argument : arguments) command += " '" + argument + "'";
  return exit_status(command + " >/dev/null");
}

}  // namespace quire
