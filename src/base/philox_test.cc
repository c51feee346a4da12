#include "base/philox.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

// Known answers: Random123, kat_vectors, "philox4x32 10".
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32_10({0, 0, 0, 0}, {0, 0}), (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32_10({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomBits, EveryArgumentBitCounts) {
  const uint64_t base = random_bits(7, 3, RandomPurpose::kSample);
  EXPECT_EQ(random_bits(7, 3, RandomPurpose::kSample), base);
  EXPECT_NE(random_bits(7, 3, static_cast<RandomPurpose>(1)), base);
  for (int bit = 0; bit < 64; ++bit) {
    EXPECT_NE(random_bits(7 ^ (uint64_t{1} << bit), 3, RandomPurpose::kSample), base);
    EXPECT_NE(random_bits(7, 3 ^ (uint64_t{1} << bit), RandomPurpose::kSample), base);
  }
}

}  // namespace
}  // namespace quire
