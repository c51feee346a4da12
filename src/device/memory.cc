#include "device/memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace quire {
namespace {
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kPage = 4096;

size_t round_up(size_t value, size_t multiple) { return (value + multiple - 1) / multiple * multiple; }
}  // namespace

Result<Buffer> Buffer::allocate(int64_t bytes, std::string_view purpose) {
  Buffer buffer;
  if (bytes == 0) return buffer;
  const size_t size = round_up(static_cast<size_t>(bytes), kPage);
  const bool huge = size >= kHugePage;
  // Aligned by mapping a huge page more and giving back what lies around.
  const size_t mapped = huge ? size + kHugePage : size;
  void* raw = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED) {
    return resource_exhausted("cannot allocate " + std::to_string(bytes) + " bytes for " + std::string(purpose) + ": " +
                              std::strerror(errno));
  }
  auto* start = static_cast<std::byte*>(raw);
  if (huge) {
    const size_t skip = round_up(reinterpret_cast<uintptr_t>(start), kHugePage) - reinterpret_cast<uintptr_t>(start);
    if (skip > 0) ::munmap(start, skip);
    if (skip < kHugePage) ::munmap(start + skip + size, kHugePage - skip);
    start += skip;
    ::madvise(start, size, MADV_HUGEPAGE);  // advice: without it the memory is slower, not wrong
  }
  buffer.data_ = start;
  buffer.size_ = bytes;
  return buffer;
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Buffer::~Buffer() {
  if (data_ != nullptr) ::munmap(data_, static_cast<size_t>(size_));
}

}  // namespace quire
