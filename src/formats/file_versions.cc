#include "formats/file_versions.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace quire {

Result<std::string> file_versions(std::span<const std::string> files) {
  std::string versions;
  for (const std::string& file : files) {
    struct stat info {};
    if (::stat(file.c_str(), &info) != 0) return io_error(file + ": cannot be examined: " + std::strerror(errno));
    versions += "file " + file + " " + std::to_string(info.st_size) + " " + std::to_string(info.st_mtim.tv_sec) + "." +
                std::to_string(info.st_mtim.tv_nsec) + "\n";
  }
  return versions;
}

}  // namespace quire
