// The patterns by which quantization settings name modules: regular expressions in the subset that tools write, matched
// from the start of the name as Python's re.match does. Time is in proportion to name times pattern, whatever the
// pattern: it comes from a file.
//
// Known: literals, "\." and other escaped signs, "\d", "\w", ".", "[a-z]" and "[^a-z]", "( | )", "(?:", "*", "+", "?",
// "{m}", "{m,n}", "^" and "$".
#pragma once

#include <bitset>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace quire {

class ModulePattern {
 public:
  // Fails for constructs that are not known, without naming a file.
  static Result<ModulePattern> parse(std::string_view pattern);

  // Whether some beginning of `name` matches.
  bool matches_start(std::string_view name) const;

 private:
  friend class ModulePatternParser;

  enum class Kind : uint8_t { kChar, kSplit, kBegin, kEnd, kAccept };
  struct State {
    Kind kind = Kind::kAccept;
    std::bitset<256> chars = {};  // kChar
    int next = -1;
    int other = -1;  // kSplit
  };
  void add(int state, size_t at, size_t length, std::vector<int>* list, std::vector<bool>* listed) const;

  std::vector<State> states_;
  int start_ = 0;
};

}  // namespace quire
