#include "model/packed_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <span>
#include <utility>

#include "base/xxh64.h"
#include "model/packed_part.h"

namespace quire {
namespace {

constexpr char kMagic[] = "quire packed weights 2\n";
constexpr size_t kHeaderUnit = 4096;
constexpr int64_t kBlockBytes = int64_t{256} << 10;  // read at a time, and summed while it is in the processor's cache

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

 private:
  int fd_;
};

Status failed(const std::string& path, const char* what, int error) {
  return io_error(path + ": cannot be " + what + ": " + std::strerror(error));
}

// 0, or the error; 0 also where the file ends early, of which the checksums tell.
int read_at(int fd, std::span<std::byte> to, int64_t offset) {
  while (!to.empty()) {
    const ssize_t got = ::pread(fd, to.data(), to.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) return 0;
    to = to.subspan(static_cast<size_t>(got));
    offset += got;
  }
  return 0;
}

int64_t block_count(const Buffer& memory) { return (memory.size() + kBlockBytes - 1) / kBlockBytes; }

std::span<std::byte> block_of(const Buffer& memory, int64_t block) {
  const int64_t at = block * kBlockBytes;
  return {memory.data() + at, static_cast<size_t>(std::min(kBlockBytes, memory.size() - at))};
}

// Sums of the blocks, then one of these sums and the header.
using Sums = std::vector<uint64_t>;

uint64_t block_sum(const Buffer& memory, int64_t block) { return xxh64(block_of(memory, block), 0); }

uint64_t sum_of(const std::string& header, std::span<const uint64_t> sums) {
  return xxh64(std::as_bytes(sums), xxh64(std::as_bytes(std::span(header)), 0));
}

}  // namespace

PackedFile::PackedFile(std::string path, const Checkpoint& checkpoint, std::optional<DType> head,
                       const DeviceSizes& sizes)
    : path_(std::move(path)) {
  std::string what = "layout " + std::string(sizes.layout()) + "\n" + checkpoint.file_versions();
  what += "head " + (head.has_value() ? std::string(dtype_info(*head).name) : "as stored") + "\n";
  for (const TensorRef& tensor : checkpoint.tensors()) {
    what += tensor.name + " " + tensor.type_name() + " " + weight_type_name(tensor.type()) + " " +
            std::to_string(tensor.rows()) + " " + std::to_string(tensor.columns()) + "\n";
  }
  header_ = kMagic + std::to_string(what.size()) + "\n" + what;
  header_.resize((header_.size() + kHeaderUnit - 1) / kHeaderUnit * kHeaderUnit);
}

PackedFile::Reading PackedFile::read(Device& device, Buffer& memory) const {
  sweep_packed_parts(std::filesystem::path(path_).parent_path().string());
  Result<Reading> reading = try_read(device, memory);
  if (reading.ok()) return std::move(*reading);
  return {.filled = false, .note = reading.status().message() + "; the weights were packed anew"};
}

Result<PackedFile::Reading> PackedFile::try_read(Device& device, Buffer& memory) const {
  const File file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.fd() < 0) {
    // Also where the folder is not there: write() makes it, or says why not.
    if (errno == ENOENT || errno == ENOTDIR) return Reading{};
    return failed(path_, "opened", errno);
  }
  struct stat info {};
  if (::fstat(file.fd(), &info) != 0) return failed(path_, "examined", errno);
  if (!S_ISREG(info.st_mode)) return io_error(path_ + ": is not a regular file");
  const auto header_bytes = static_cast<int64_t>(header_.size());
  std::string header(header_.size(), '\0');
  Sums sums(static_cast<size_t>(block_count(memory) + 1));
  const std::span<std::byte> sum_bytes = std::as_writable_bytes(std::span(sums));
  int error = read_at(file.fd(), std::as_writable_bytes(std::span(header)), 0);
  if (error == 0) error = read_at(file.fd(), sum_bytes, header_bytes + memory.size());
  if (error != 0) return failed(path_, "read", error);

  const Status damaged = corrupt(path_ + ": is damaged (its checksum is wrong)");
  const bool whole = info.st_size == header_bytes + memory.size() + static_cast<int64_t>(sum_bytes.size());
  const bool sound = whole && sums.back() == sum_of(header, std::span(sums).first(sums.size() - 1));
  if (header != header_ && (sound || !whole)) {
    return Reading{.filled = false, .note = path_ + ": was of other weights or settings; packed anew"};
  }
  if (!sound) return damaged;

  std::atomic<int> failure{0};
  std::atomic<bool> wrong{false};
  device.parallel(block_count(memory), [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end && !wrong.load(); ++block) {
      const int why = read_at(file.fd(), block_of(memory, block), header_bytes + block * kBlockBytes);
      if (why != 0) failure.store(why);
      if (why != 0 || block_sum(memory, block) != sums[static_cast<size_t>(block)]) wrong.store(true);
    }
  });
  if (failure.load() != 0) return failed(path_, "read", failure.load());
  if (wrong.load()) return damaged;
  return Reading{.filled = true, .note = ""};
}

Status PackedFile::write(Device& device, const Buffer& memory) const {
  struct stat info {};
  if (::stat(path_.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) return io_error(path_ + ": is not a regular file");
  Sums sums(static_cast<size_t>(block_count(memory)));
  device.parallel(block_count(memory), [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) sums[static_cast<size_t>(block)] = block_sum(memory, block);
  });
  sums.push_back(sum_of(header_, sums));
  const std::span<const std::byte> sum_bytes = std::as_bytes(std::span(sums));
  const int64_t bytes = static_cast<int64_t>(header_.size() + sum_bytes.size()) + memory.size();
  QUIRE_ASSIGN_OR_RETURN(PackedPart part, PackedPart::create(path_, bytes));
  QUIRE_RETURN_IF_ERROR(part.write(std::as_bytes(std::span(header_))));
  QUIRE_RETURN_IF_ERROR(part.write({memory.data(), static_cast<size_t>(memory.size())}));
  QUIRE_RETURN_IF_ERROR(part.write(sum_bytes));
  return part.finish();
}

}  // namespace quire
