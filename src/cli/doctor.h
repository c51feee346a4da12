// What quire finds on this machine, as a list of checks: for `quire doctor`. Reads and measures; changes nothing.
#pragma once

#include <string>
#include <vector>

#include "options/options.h"

namespace quire {

struct Check {
  enum class State {
    kGood,
    kRemark,  // it works, but slower or smaller than it could
    kStops,   // `quire serve` would not start
  };
  std::string name;
  State state = State::kGood;
  std::string text;
};

// About two seconds, most of them for the speed of memory. One thread.
std::vector<Check> check_machine(const Options& options);

}  // namespace quire
