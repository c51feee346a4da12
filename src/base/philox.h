// Philox 4x32-10: a random number as a pure function of a key and a counter, so a draw needs no generator state and
// cannot depend on what else was drawn. Source: Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3" (SC 2011).
#pragma once

#include <array>
#include <cstdint>

namespace quire {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

constexpr PhiloxCounter philox4x32_10(PhiloxCounter counter, PhiloxKey key) {
  constexpr uint64_t kMultiplier0 = 0xD2511F53;
  constexpr uint64_t kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9;  // golden ratio
  constexpr uint32_t kWeyl1 = 0xBB67AE85;  // sqrt(3) - 1
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0];
    const uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

// What a number is drawn for. Two purposes never share a number, however many each draws.
enum class RandomPurpose : uint32_t { kSample = 0, kBranchSeed = 1, kResample = 2 };

// 64 uniform bits for the token at `output_index` of the generation seeded with `seed`.
constexpr uint64_t random_bits(uint64_t seed, uint64_t output_index, RandomPurpose purpose) {
  const PhiloxCounter bits =
      philox4x32_10({static_cast<uint32_t>(output_index), static_cast<uint32_t>(output_index >> 32),
                     static_cast<uint32_t>(purpose), 0},
                    {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  return static_cast<uint64_t>(bits[1]) << 32 | bits[0];
}

// Seed of branch j of a request: the request's own for branch 0, so that one choice of several equals the only one.
constexpr uint64_t branch_seed(uint64_t seed, uint64_t branch) {
  return branch == 0 ? seed : random_bits(seed, branch, RandomPurpose::kBranchSeed);
}

}  // namespace quire
