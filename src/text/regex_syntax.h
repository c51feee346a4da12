// Translates the regular expressions of tokenizer.json (Oniguruma, Ruby syntax) into PCRE2's (UTF and UCP mode, with
// PCRE2_MULTILINE and LF as the newline).
//
// The two agree on most constructs; what they read differently is rewritten (\s, \w, \h, \b, \p{..} with the code
// points that PCRE2's tables lack, (?m:) for "dot matches newline") and what has no equivalent is refused by name
// (nested classes, &&, a `+` after an interval, an option switched on in the middle of a group).
// Source: Oniguruma 6.9 doc/RE and doc/SYNTAX.md, pcre2pattern(3).
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace quire {

Result<std::string> to_pcre2_syntax(std::string_view pattern);

}  // namespace quire
