#include "base/xxh64.h"

#include <bit>
#include <cstring>

namespace quire {
namespace {

constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87u;
constexpr uint64_t kPrime2 = 0xC2B2AE3D27D4EB4Fu;
constexpr uint64_t kPrime3 = 0x165667B19E3779F9u;
constexpr uint64_t kPrime4 = 0x85EBCA77C2B2AE63u;
constexpr uint64_t kPrime5 = 0x27D4EB2F165667C5u;
constexpr size_t kStripe = 32;

static_assert(std::endian::native == std::endian::little);

template <typename T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

uint64_t round(uint64_t sum, uint64_t lane) { return std::rotl(sum + lane * kPrime2, 31) * kPrime1; }

uint64_t merge(uint64_t hash, uint64_t sum) { return (hash ^ round(0, sum)) * kPrime1 + kPrime4; }

}  // namespace

uint64_t xxh64(std::span<const std::byte> bytes, uint64_t seed) {
  const std::byte* at = bytes.data();
  size_t left = bytes.size();
  uint64_t hash = seed + kPrime5;
  if (left >= kStripe) {
    uint64_t sums[4] = {seed + kPrime1 + kPrime2, seed + kPrime2, seed, seed - kPrime1};
    for (; left >= kStripe; at += kStripe, left -= kStripe) {
      for (size_t i = 0; i < 4; ++i) sums[i] = round(sums[i], load<uint64_t>(at + 8 * i));
    }
    hash = std::rotl(sums[0], 1) + std::rotl(sums[1], 7) + std::rotl(sums[2], 12) + std::rotl(sums[3], 18);
    for (const uint64_t sum : sums) hash = merge(hash, sum);
  }
  hash += bytes.size();
  for (; left >= 8; at += 8, left -= 8) hash = std::rotl(hash ^ round(0, load<uint64_t>(at)), 27) * kPrime1 + kPrime4;
  if (left >= 4) {
    hash = std::rotl(hash ^ load<uint32_t>(at) * kPrime1, 23) * kPrime2 + kPrime3;
    at += 4;
    left -= 4;
  }
  for (; left > 0; ++at, --left) hash = std::rotl(hash ^ static_cast<uint64_t>(*at) * kPrime5, 11) * kPrime1;
  hash = (hash ^ hash >> 33) * kPrime2;
  hash = (hash ^ hash >> 29) * kPrime3;
  return hash ^ hash >> 32;
}

}  // namespace quire
