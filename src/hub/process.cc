#include "hub/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

extern char** environ;

namespace quire {
namespace {

constexpr size_t kKeptOutput = 64 * 1024;
constexpr int kTickMs = 100;

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> merged_environment(const std::vector<std::pair<std::string, std::string>>& added) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    bool replaced = false;
    for (const auto& [name, value] : added) replaced = replaced || text.starts_with(name + "=");
    if (!replaced) entries.emplace_back(text);
  }
  for (const auto& [name, value] : added) entries.push_back(name + "=" + value);
  return entries;
}

// In a process group of its own, so that its children can be ended with it.
Result<pid_t> spawn(std::vector<std::string> arguments, std::vector<std::string> environment, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  pid_t child = 0;
  const int error = posix_spawnp(&child, arguments[0].c_str(), &actions, &attributes, pointers_to(arguments).data(),
                                 pointers_to(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error == ENOENT) return not_found(arguments[0] + ": no such program");
  if (error != 0) return io_error(arguments[0] + " cannot be started: " + std::strerror(error));
  return child;
}

int wait_for(pid_t child) {
  int state = 0;
  while (waitpid(child, &state, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(state) ? 128 + WTERMSIG(state) : WEXITSTATUS(state);
}

// Collects output until the program closes it, that is, ends. False: `tick` said to stop.
bool collect(int input, std::string& output, const std::function<bool()>& tick) {
  std::array<char, 4096> buffer;
  while (true) {
    if (!tick()) return false;
    pollfd waited = {.fd = input, .events = POLLIN, .revents = 0};
    if (poll(&waited, 1, kTickMs) <= 0) continue;
    const ssize_t count = read(input, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return true;
    output.append(buffer.data(), static_cast<size_t>(count));
    if (output.size() > kKeptOutput) output.erase(0, output.size() - kKeptOutput);
  }
}

}  // namespace

Result<ProcessResult> run_process(const std::vector<std::string>& arguments,
                                  const std::vector<std::pair<std::string, std::string>>& environment,
                                  const std::function<bool()>& tick) {
  std::array<int, 2> ends;
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return io_error(std::string("cannot create a pipe: ") + std::strerror(errno));
  const Result<pid_t> child = spawn(arguments, merged_environment(environment), ends[1]);
  close(ends[1]);
  if (!child.ok()) {
    close(ends[0]);
    return child.status();
  }
  ProcessResult result;
  const bool finished = collect(ends[0], result.output, tick);
  close(ends[0]);
  if (!finished) kill(-*child, SIGKILL);
  result.exit_code = wait_for(*child);
  if (!finished) return cancelled("");
  return result;
}

}  // namespace quire
