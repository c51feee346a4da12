#include "formats/partial_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/messages.h"
#include "formats/partial_file.h"

namespace quire {
namespace {

namespace fs = std::filesystem;

// Whether renaming can put a directory here; found out before hours of work rather than after.
Status check_target(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  if (name.empty() || name == "." || name == "..") {
    return invalid_argument(quote(path) + ": is no name for a new directory");
  }
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return {};  // whatever else is wrong shows when the partial one is made
  std::error_code error;
  if (!S_ISDIR(info.st_mode) || !fs::is_empty(path, error) || error) {
    return invalid_argument(path + ": exists already and is not overwritten; remove it, or name another directory");
  }
  struct stat parent {};
  if (::stat((path + "/..").c_str(), &parent) == 0 && parent.st_dev != info.st_dev) {
    return invalid_argument(path +
                            ": is where a disk is mounted and cannot be replaced; name a new directory inside it");
  }
  return {};
}

// Removes the plain files in it. Anything else was not left by a writer, and stays.
Status empty_leftover(const std::string& partial) {
  std::error_code error;
  for (fs::directory_iterator it(partial, error), end; !error && it != end; it.increment(error)) {
    if (!it->is_regular_file(error) || it->is_symlink(error)) {
      return invalid_argument(partial + ": holds " + it->path().filename().string() +
                              ", which no writer left; remove this directory, or name another");
    }
  }
  for (fs::directory_iterator it(partial, error), end; !error && it != end; it.increment(error))
    fs::remove(it->path(), error);
  return error ? io_error(partial + ": cannot be emptied: " + error.message()) : Status();
}

}  // namespace

PartialDirectory::PartialDirectory(std::string path, std::string partial, int fd)
    : path_(std::move(path)), partial_(std::move(partial)), fd_(fd) {}

PartialDirectory::PartialDirectory(PartialDirectory&& other) noexcept
    : path_(std::move(other.path_)), partial_(std::exchange(other.partial_, {})), fd_(std::exchange(other.fd_, -1)) {}

PartialDirectory::~PartialDirectory() {
  std::error_code error;
  if (!partial_.empty()) fs::remove_all(partial_, error);
  if (fd_ >= 0) ::close(fd_);
}

Result<PartialDirectory> PartialDirectory::create(const std::string& given) {
  std::string path = given;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  QUIRE_RETURN_IF_ERROR(check_target(path));
  const std::string partial = path + std::string(kPartialSuffix);
  if (::mkdir(partial.c_str(), 0755) != 0 && errno != EEXIST) {
    const int error = errno;
    if (error == ENOENT) {
      return not_found(path + ": cannot be created: the folder " + fs::path(path).parent_path().string() +
                       " does not exist; make it first");
    }
    return io_error(partial + ": cannot be created: " + std::strerror(error));
  }
  const int fd = ::open(partial.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return io_error(partial + ": cannot be opened: " + std::strerror(errno));
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    ::close(fd);
    return invalid_argument(partial + ": another program is writing this directory; wait for it, or name another");
  }
  const Status emptied = empty_leftover(partial);
  if (!emptied.ok()) {
    ::close(fd);
    return emptied;
  }
  return PartialDirectory(path, partial, fd);
}

Status PartialDirectory::finish() {
  QUIRE_RETURN_IF_ERROR(rename_in_place(partial_, path_));
  partial_.clear();
  return {};
}

}  // namespace quire
