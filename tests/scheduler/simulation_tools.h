// What simulations share: draws that a seed decides, and a way out when the law is broken.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <random>
#include <stdexcept>
#include <string>

namespace quire {

class Random {
 public:
  explicit Random(uint64_t seed) : bits_(seed) {}
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(bits_() % static_cast<uint64_t>(high - low + 1));
  }
  bool chance(double probability) { return static_cast<double>(bits_() >> 11) * 0x1p-53 < probability; }
  template <typename T>
  T pick(std::initializer_list<T> from) {
    return from.begin()[between(0, static_cast<int64_t>(from.size()) - 1)];
  }

 private:
  std::mt19937_64 bits_;
};

struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void require(bool condition, const std::string& what) {
  if (!condition) throw Failure(what);
}

}  // namespace quire
