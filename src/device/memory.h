// Memory of a device: page-aligned, zeroed, in huge pages where the system grants them. Owns its mapping; movable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace quire {

class Buffer {
 public:
  Buffer() = default;
  // `purpose` names the memory in the error: "the KV cache".
  static Result<Buffer> allocate(int64_t bytes, std::string_view purpose);

  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  std::byte* data() const { return data_; }
  int64_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  int64_t size_ = 0;
};

// Hands out 64-byte aligned pieces of one region, in order. With a null base it only counts: the same code that lays
// memory out can then plan it.
class Arena {
 public:
  explicit Arena(std::byte* base = nullptr) : base_(base) {}

  template <typename T>
  T* take(int64_t count) {
    std::byte* at = base_ == nullptr ? nullptr : base_ + used_;
    used_ += (count * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
    return reinterpret_cast<T*>(at);
  }

  int64_t used() const { return used_; }

 private:
  std::byte* base_;
  int64_t used_ = 0;
};

}  // namespace quire
