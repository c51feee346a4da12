// SipHash-2-4 with 128 bits of output: a keyed hash that nobody without the key can find collisions of.
// Source: Aumasson and Bernstein, "SipHash: a fast short-input PRF" (INDOCRYPT 2012), and its 128-bit variant.
// Pure function; usable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace quire {

struct HashKey {
  uint64_t k0 = 0;
  uint64_t k1 = 0;
};

struct Hash128 {
  uint64_t low = 0;
  uint64_t high = 0;
  bool operator==(const Hash128&) const = default;
};

Hash128 siphash128(const HashKey& key, std::span<const std::byte> message);

}  // namespace quire
