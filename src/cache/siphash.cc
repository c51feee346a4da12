#include "cache/siphash.h"

#include <bit>
#include <cstring>

namespace quire {
namespace {

static_assert(std::endian::native == std::endian::little, "words are loaded in little-endian order");

struct State {
  uint64_t v0, v1, v2, v3;

  void rounds(int count) {
    for (int i = 0; i < count; ++i) {
      v0 += v1;
      v2 += v3;
      v1 = std::rotl(v1, 13) ^ v0;
      v3 = std::rotl(v3, 16) ^ v2;
      v0 = std::rotl(v0, 32);
      v2 += v1;
      v0 += v3;
      v1 = std::rotl(v1, 17) ^ v2;
      v3 = std::rotl(v3, 21) ^ v0;
      v2 = std::rotl(v2, 32);
    }
  }

  void absorb(uint64_t word) {
    v3 ^= word;
    rounds(2);
    v0 ^= word;
  }

  uint64_t output() const { return v0 ^ v1 ^ v2 ^ v3; }
};

}  // namespace

Hash128 siphash128(const HashKey& key, std::span<const std::byte> message) {
  // The initial words spell "somepseudorandomlygeneratedbytes".
  State state{key.k0 ^ 0x736f6d6570736575, key.k1 ^ 0x646f72616e646f6d, key.k0 ^ 0x6c7967656e657261,
              key.k1 ^ 0x7465646279746573};
  state.v1 ^= 0xee;
  const size_t whole = message.size() / 8 * 8;
  for (size_t i = 0; i < whole; i += 8) {
    uint64_t word;
    std::memcpy(&word, message.data() + i, 8);
    state.absorb(word);
  }
  uint64_t last = static_cast<uint64_t>(message.size()) << 56;
  for (size_t i = whole; i < message.size(); ++i) last |= static_cast<uint64_t>(message[i]) << (8 * (i - whole));
  state.absorb(last);

  Hash128 hash;
  state.v2 ^= 0xee;
  state.rounds(4);
  hash.low = state.output();
  state.v1 ^= 0xdd;
  state.rounds(4);
  hash.high = state.output();
  return hash;
}

}  // namespace quire
