#include "base/xxh64.h"

#include <gtest/gtest.h>

#include <vector>

namespace quire {
namespace {

std::vector<std::byte> bytes_of(size_t count) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>((i * 37 + 11) % 251);
  return bytes;
}

// Sums by libxxhash 0.8.1, of every kind of end that a text can have.
TEST(Xxh64, GivesThePublishedSums) {
  struct Case {
    size_t bytes;
    uint64_t sum;     // seed 0
    uint64_t seeded;  // seed 0x9E3779B97F4A7C15
  };
  for (const Case& each : std::vector<Case>{
           {0, 0xEF46DB3751D8E999u, 0xC4349FC93C010000u},
           {1, 0xF592C0C7639C4CB6u, 0x3F7EBBD0A20F83CCu},
           {3, 0x22C08528601D4F27u, 0xB829B5FBBA7F12FBu},
           {4, 0xFB1E5CF2F1AE4D95u, 0x4D32E4C842C6371Eu},
           {7, 0x5613AC510496C04Eu, 0x566314BF1BDA8AABu},
           {8, 0x3855719B7992E073u, 0xAB183A8BE050DCF5u},
           {15, 0x39C3581ECBAECA30u, 0x6C283195167BCD4Au},
           {31, 0x1DC0DF26850864D4u, 0x89BD8D34E6B5FDF6u},
           {32, 0x3207E1454ACA04AFu, 0xF0997B4013D492A8u},
           {33, 0x72D764E14938EC2Eu, 0xEAEEFF6DC8432A49u},
           {63, 0x953E826FDA11C2FCu, 0xCD1F1E0C7D042FDBu},
           {64, 0x3AA319987B92380Au, 0xEE2C647FED0CB3F6u},
           {100, 0x5299EB7592CA4649u, 0x3A689B829AF5BB31u},
           {1000, 0xF3E831061114885Cu, 0x61A2571DF279D318u},
       }) {
    EXPECT_EQ(xxh64(bytes_of(each.bytes), 0), each.sum) << each.bytes;
    EXPECT_EQ(xxh64(bytes_of(each.bytes), 0x9E3779B97F4A7C15u), each.seeded) << each.bytes;
  }
}

TEST(Xxh64, EveryBitCounts) {
  std::vector<std::byte> bytes = bytes_of(77);
  const uint64_t sum = xxh64(bytes, 1);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    EXPECT_NE(xxh64(bytes, 1), sum) << bit;
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
  }
  EXPECT_EQ(xxh64(bytes, 1), sum);
}

}  // namespace
}  // namespace quire
