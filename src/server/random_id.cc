#include "server/random_id.h"

#include <cstdint>
#include <random>

namespace quire {

std::string random_id() {
  static thread_local std::random_device device;
  constexpr char kHex[] = "0123456789abcdef";
  std::string id;
  for (int word = 0; word < 3; ++word) {
    const uint32_t bits = device();
    for (int digit = 0; digit < 8; ++digit) id.push_back(kHex[(bits >> (4 * digit)) & 15]);
  }
  return id;
}

}  // namespace quire
