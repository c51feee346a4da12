// A fast 64-bit hash of short byte strings for the tokenizer's tables.
//
// Multiply-and-fold over eight bytes at a time, in the manner of wyhash (Wang Yi, public domain description). Not
// keyed: the tables it serves are filled from checkpoints and are bounded in size, or overwrite on collision.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace quire {

inline uint64_t fold_multiply(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline uint64_t hash_bytes(std::string_view bytes) {
  constexpr uint64_t kOdd1 = 0x9E3779B97F4A7C15u, kOdd2 = 0xD6E8FEB86659FD93u;
  uint64_t h = kOdd1 ^ bytes.size();
  while (bytes.size() >= 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), sizeof word);
    h = fold_multiply(h ^ word, kOdd2);
    bytes.remove_prefix(8);
  }
  uint64_t tail = 0;
  for (size_t i = 0; i < bytes.size(); ++i)
    tail |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])) << 8 * i;
  return fold_multiply(h ^ tail, kOdd1);
}

}  // namespace quire
