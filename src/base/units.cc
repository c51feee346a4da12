#include "base/units.h"

#include <array>
#include <cstdio>

namespace quire {

std::string bytes_text(int64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "kB", "MB", "GB", "TB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, unit > 0 && value < 99.95 ? "%.1f %s" : "%.0f %s", value, kUnits[unit]);
  return buffer;
}

std::string count_text(int64_t count) {
  std::string digits = std::to_string(count);
  const size_t first = digits.starts_with('-') ? 1 : 0;
  for (size_t at = digits.size(); at > first + 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string counted(int64_t count, std::string_view noun) {
  return count_text(count).append(" ").append(noun).append(count == 1 ? "" : "s");
}

}  // namespace quire
