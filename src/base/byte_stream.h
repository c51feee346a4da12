// Values as bytes and back, for what one quire writes and the same quire reads: little-endian, no alignment, lists with
// their length in front. The reader takes hostile bytes: it never reads beyond them, takes no more memory than they
// justify, and once something is missing stays failed.
//
// Thread: one at a time.
#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace quire {

template <typename T>
concept PlainValue = std::is_arithmetic_v<T> || std::is_enum_v<T>;

class ByteWriter {
 public:
  template <PlainValue T>
  void put(T value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    bytes_.append(bytes, sizeof value);
  }
  template <PlainValue T>
  void put_list(std::span<const T> values) {
    put(static_cast<uint64_t>(values.size()));
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  }
  template <PlainValue T>
  void put_list(const std::vector<T>& values) {
    put_list(std::span<const T>(values));
  }
  void put_text(std::string_view text) { put_list(std::span<const char>(text)); }

  const std::string& bytes() const { return bytes_; }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class ByteSource {
 public:
  // The bytes outlive the source.
  explicit ByteSource(std::string_view bytes) : rest_(bytes) {}

  // False once a value was missing or not acceptable; what is read then is zero.
  bool ok() const { return ok_; }
  bool at_end() const { return rest_.empty(); }
  void fail() {
    ok_ = false;
    rest_ = {};
  }

  template <PlainValue T>
  T get() {
    T value{};
    if (rest_.size() < sizeof value) {
      fail();
      return value;
    }
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
    return value;
  }
  // A bool or an enumeration whose values are 0 to `last`.
  template <PlainValue T>
  T get_choice(T last) {
    const auto value = get<uint8_t>();
    if (value > static_cast<uint8_t>(last)) fail();
    return ok_ ? static_cast<T>(value) : T{};
  }
  template <PlainValue T>
  std::vector<T> get_list() {
    const uint64_t count = get_count(sizeof(T));
    std::vector<T> values(count);
    if (count > 0) std::memcpy(values.data(), rest_.data(), count * sizeof(T));
    rest_.remove_prefix(count * sizeof(T));
    return values;
  }
  std::string get_text() {
    const std::vector<char> characters = get_list<char>();
    return {characters.begin(), characters.end()};
  }
  // The length of a list whose elements take at least `element_bytes` each; 0 when so many cannot follow.
  uint64_t get_count(size_t element_bytes) {
    const auto count = get<uint64_t>();
    if (count > rest_.size() / element_bytes) fail();
    return ok_ ? count : 0;
  }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace quire
