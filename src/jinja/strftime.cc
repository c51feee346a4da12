#include "jinja/strftime.h"

#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>

namespace quire::jinja {
namespace {

constexpr size_t kMaxFormatBytes = 1024;
constexpr size_t kMaxTimeBytes = 8192;

// Directives that Python handles itself: microseconds, and the time zone, which a naive datetime does not have.
std::string expand_own_directives(std::string_view format, long microseconds) {
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      out.push_back(format[i]);
      continue;
    }
    const char directive = format[++i];
    if (directive == 'f') {
      char digits[16];
      std::snprintf(digits, sizeof digits, "%06ld", microseconds % 1'000'000);
      out += digits;
    } else if (directive != 'z' && directive != 'Z') {
      out.push_back('%');
      out.push_back(directive);
    }
  }
  return out;
}

}  // namespace

Result<std::string> format_time(std::string_view format, std::optional<int64_t> utc_seconds) {
  if (format.size() > kMaxFormatBytes || format.find('\0') != std::string_view::npos) {
    return out_of_range("strftime_now: the format has more than " + std::to_string(kMaxFormatBytes) +
                        " bytes or a NUL");
  }
  std::tm fields{};
  long microseconds = 0;
  std::time_t seconds = 0;
  bool converted = false;
  if (utc_seconds) {
    seconds = static_cast<std::time_t>(*utc_seconds);
    converted = gmtime_r(&seconds, &fields) != nullptr;
  } else {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    microseconds = static_cast<long>(std::chrono::duration_cast<std::chrono::microseconds>(now).count() % 1'000'000);
    seconds = static_cast<std::time_t>(std::chrono::duration_cast<std::chrono::seconds>(now).count());
    converted = localtime_r(&seconds, &fields) != nullptr;
  }
  if (!converted) return out_of_range("strftime_now: the time is out of range");
  // A mark in front tells an empty result from one that did not fit.
  const std::string marked = "|" + expand_own_directives(format, microseconds);
  std::array<char, kMaxTimeBytes> buffer;
  const size_t length = std::strftime(buffer.data(), buffer.size(), marked.c_str(), &fields);
  if (length == 0)
    return out_of_range("strftime_now: the text is longer than " + std::to_string(kMaxTimeBytes) + " bytes");
  return std::string(buffer.data() + 1, length - 1);
}

}  // namespace quire::jinja
