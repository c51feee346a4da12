#include "cli/input.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

TEST(ParseTime, ReadsUtc) {
  EXPECT_EQ(*parse_time("1970-01-01T00:00:00"), 0);
  EXPECT_EQ(*parse_time("2026-01-02T03:04:05"), 1767323045);
  EXPECT_EQ(*parse_time("2024-02-29T23:59:59"), 1709251199);
}

TEST(ParseTime, RefusesWhatIsNoTime) {
  for (const char* text : {"", "now", "2026-01-02", "2026-01-02 03:04:05", "2026-1-2T3:4:5", "2026-02-29T00:00:00",
                           "2026-01-02T24:00:00", "2026-01-02T03:04:05Z", "2026-01-02T03:04:60"}) {
    EXPECT_FALSE(parse_time(text).ok()) << text;
  }
}

TEST(ReadFile, HoldsTheLimit) {
  EXPECT_FALSE(read_file("/no/such/file", 10).ok());
  const std::string self = QUIRE_SOURCE_DIR "/src/cli/input_test.cc";
  EXPECT_TRUE(read_file(self, 1 << 20)->starts_with("#include \"cli/input.h\""));
  EXPECT_NE(read_file(self, 10).status().message().find("10 B is the limit"), std::string::npos);
}

}  // namespace
}  // namespace quire
