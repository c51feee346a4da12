#include "model/packed_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "formats/file_versions.h"

namespace quire {
namespace {

constexpr char kMagic[] = "quire packed weights 1\n";
constexpr size_t kHeaderUnit = 4096;
constexpr int64_t kPieceBytes = int64_t{4} << 20;  // that one thread reads at a time

// A file descriptor that closes itself.
class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  int fd() const { return fd_; }
  bool close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

Status failed(const std::string& path, const char* what) {
  return io_error(path + ": cannot be " + what + ": " + std::strerror(errno) + " (see --pack-cache)");
}

// False at the end of the file and on errors; errno is 0 at the end.
bool read_at(int fd, std::byte* to, int64_t bytes, int64_t offset) {
  while (bytes > 0) {
    errno = 0;
    const ssize_t got = ::pread(fd, to, static_cast<size_t>(bytes), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    bytes -= got;
    offset += got;
  }
  return true;
}

bool write_all(int fd, const std::byte* from, int64_t bytes) {
  while (bytes > 0) {
    const ssize_t put = ::write(fd, from, static_cast<size_t>(std::min(bytes, kPieceBytes)));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    from += put;
    bytes -= put;
  }
  return true;
}

}  // namespace

Result<PackedFile> PackedFile::of(const std::string& path, const Checkpoint& checkpoint, std::optional<DType> head,
                                  const DeviceSizes& sizes) {
  std::string what = "layout " + std::string(sizes.layout()) + "\n";
  QUIRE_ASSIGN_OR_RETURN(const std::string files, file_versions(checkpoint.files()));
  what += files;
  what += "head " + (head.has_value() ? std::string(dtype_info(*head).name) : "as stored") + "\n";
  for (const TensorRef& tensor : checkpoint.tensors()) {
    what += tensor.name + " " + tensor.type_name() + " " + weight_type_name(tensor.type()) + " " +
            std::to_string(tensor.rows()) + " " + std::to_string(tensor.columns()) + "\n";
  }
  PackedFile result;
  result.path_ = path;
  result.header_ = kMagic + std::to_string(what.size()) + "\n" + what;
  result.header_.resize((result.header_.size() + kHeaderUnit - 1) / kHeaderUnit * kHeaderUnit);
  return result;
}

Result<bool> PackedFile::read(Device& device, Buffer& memory) const {
  const File file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.fd() < 0) {
    if (errno == ENOENT) return false;
    return failed(path_, "opened");
  }
  struct stat info {};
  if (::fstat(file.fd(), &info) != 0) return failed(path_, "examined");
  const auto header_bytes = static_cast<int64_t>(header_.size());
  if (!S_ISREG(info.st_mode)) return invalid_argument(path_ + ": is not a regular file (see --pack-cache)");
  if (info.st_size != header_bytes + memory.size()) return false;
  std::string header(header_.size(), '\0');
  if (!read_at(file.fd(), reinterpret_cast<std::byte*>(header.data()), header_bytes, 0)) return failed(path_, "read");
  if (header != header_) return false;
  std::atomic<int> error{0};
  const int64_t pieces = (memory.size() + kPieceBytes - 1) / kPieceBytes;
  device.parallel(pieces, [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece) {
      const int64_t at = piece * kPieceBytes;
      const int64_t bytes = std::min(kPieceBytes, memory.size() - at);
      if (!read_at(file.fd(), memory.data() + at, bytes, header_bytes + at)) error.store(errno != 0 ? errno : EIO);
    }
  });
  errno = error.load();
  if (errno != 0) return failed(path_, "read");
  return true;
}

Status PackedFile::write(const Buffer& memory) const {
  const std::string part = path_ + ".part" + std::to_string(::getpid());
  File file(::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (file.fd() < 0) return failed(part, "created");
  const bool written =
      write_all(file.fd(), reinterpret_cast<const std::byte*>(header_.data()), static_cast<int64_t>(header_.size())) &&
      write_all(file.fd(), memory.data(), memory.size()) && ::fsync(file.fd()) == 0 && file.close() &&
      ::rename(part.c_str(), path_.c_str()) == 0;
  if (written) return {};
  const Status status = failed(path_, "written");
  ::unlink(part.c_str());
  return status;
}

}  // namespace quire
