// Runs another program, without a shell, and waits for it.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace quire {

struct ProcessResult {
  int exit_code = 0;   // 128 + signal where one ended it
  std::string output;  // the end of what it wrote to standard output and error, at most 64 KiB
};

// `arguments[0]` is looked up in PATH; `environment` adds to this program's own. Standard input is empty. `tick` is
// called about ten times a second; when it returns false, the program and its children are ended (kCancelled).
// Fails with kNotFound where there is no such program.
Result<ProcessResult> run_process(const std::vector<std::string>& arguments,
                                  const std::vector<std::pair<std::string, std::string>>& environment,
                                  const std::function<bool()>& tick);

}  // namespace quire
