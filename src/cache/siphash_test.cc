#include "cache/siphash.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

namespace quire {
namespace {

std::string hex(const Hash128& hash) {
  std::string text;
  for (const uint64_t half : {hash.low, hash.high}) {
    for (int byte = 0; byte < 8; ++byte) {
      char digits[3];
      std::snprintf(digits, sizeof(digits), "%02x", static_cast<unsigned>(half >> (8 * byte) & 0xff));
      text += digits;
    }
  }
  return text;
}

// Message 00 01 02 ... under key 00 01 ... 0f; values of `openssl mac -macopt size:16 SIPHASH` (OpenSSL 3.0).
TEST(SipHash, AgreesWithOpenSsl) {
  const HashKey key{0x0706050403020100, 0x0f0e0d0c0b0a0908};
  const std::pair<size_t, const char*> golden[] = {
      {0, "a3817f04ba25a8e66df67214c7550293"},  {1, "da87c1d86b99af44347659119b22fc45"},
      {7, "a1f1ebbed8dbc153c0b84aa61ff08239"},  {8, "3b62a9ba6258f5610f83e264f31497b4"},
      {9, "264499060ad9baabc47f8b02bb6d71ed"},  {15, "5493e99933b0a8117e08ec0f97cfc3d9"},
      {16, "6ee2a4ca67b054bbfd3315bf85230577"}, {63, "5150d1772f50834a503e069a973fbd7c"},
      {80, "d2c76ae17a4370f858fba4795a0df822"}, {255, "1c9bb67528165f8e468248e3799b0eab"},
  };
  for (const auto& [size, digest] : golden) {
    std::vector<std::byte> message(size);
    for (size_t i = 0; i < size; ++i) message[i] = static_cast<std::byte>(i);
    EXPECT_EQ(hex(siphash128(key, message)), digest) << size << " bytes";
  }
}

}  // namespace
}  // namespace quire
