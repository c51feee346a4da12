// Numbers as people read them. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace quire {

std::string bytes_text(int64_t bytes);                      // "98.4 MB"; decimal units, as disks and downloads count
std::string count_text(int64_t count);                      // "49,152"
std::string counted(int64_t count, std::string_view noun);  // "1 token", "1,200 tokens"

}  // namespace quire
