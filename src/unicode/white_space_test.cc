#include "unicode/white_space.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

// What "".join(c for c in map(chr, range(0x110000)) if c.isspace()) gives in Python 3.11.
TEST(WhiteSpace, IsWhatPythonStrips) {
  const char32_t spaces[] = {0x09,   0x0A,   0x0B,   0x0C,   0x0D,   0x1C,   0x1D,   0x1E,   0x1F,   0x20,
                             0x85,   0xA0,   0x1680, 0x2000, 0x2001, 0x2002, 0x2003, 0x2004, 0x2005, 0x2006,
                             0x2007, 0x2008, 0x2009, 0x200A, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000};
  size_t found = 0;
  for (char32_t c = 0; c < 0x110000; ++c) found += is_space(c) ? 1 : 0;
  EXPECT_EQ(found, std::size(spaces));
  for (const char32_t c : spaces) EXPECT_TRUE(is_space(c)) << static_cast<uint32_t>(c);
}

TEST(WhiteSpace, StripsBothEndsOnly) {
  EXPECT_EQ(strip_space("\u00a0 a \u3000b\x1c\n"), "a \u3000b");
  EXPECT_EQ(strip_space(" \t "), "");
  EXPECT_EQ(strip_space(""), "");
}

}  // namespace
}  // namespace quire
