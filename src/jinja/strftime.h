// The current time as text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace quire::jinja {

// Python's datetime.now().strftime(format) in the C locale. `utc_seconds` pins the moment, in UTC; without it the
// machine's clock is read in local time.
Result<std::string> format_time(std::string_view format, std::optional<int64_t> utc_seconds);

}  // namespace quire::jinja
