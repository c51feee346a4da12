// A bounds-checked cursor over bytes of unknown origin. Reads fail, and leave the cursor where it was, instead of
// running past the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace quire {

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  size_t position() const { return position_; }
  size_t remaining() const { return bytes_.size() - position_; }

  // A little-endian value of any alignment.
  template <typename T>
  requires std::is_arithmetic_v<T>
  bool read(T* value) {
    if (remaining() < sizeof(T)) return false;
    std::memcpy(value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return true;
  }

  // The next `n` bytes in place; they live as long as the bytes given to the constructor.
  bool read_text(uint64_t n, std::string_view* text) {
    if (n > remaining()) return false;
    *text = {reinterpret_cast<const char*>(bytes_.data()) + position_, static_cast<size_t>(n)};
    position_ += static_cast<size_t>(n);
    return true;
  }

 private:
  std::span<const std::byte> bytes_;
  size_t position_ = 0;
};

}  // namespace quire
