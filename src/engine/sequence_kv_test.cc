#include "engine/sequence_kv.h"

#include <gtest/gtest.h>

#include <numeric>

namespace quire {
namespace {

ModelConfig two_groups(int64_t window) {
  ModelConfig config;
  config.kv_groups = {{.name = "global", .window = 0, .layers = 1}, {.name = "window", .window = window, .layers = 1}};
  return config;
}

std::vector<int32_t> counting(int64_t n, int32_t first = 0) {
  std::vector<int32_t> ids(static_cast<size_t>(n));
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

TEST(SequenceKv, GlobalGroupsHoldEveryTokenWindowGroupsARing) {
  const SequenceKv kv(two_groups(64), 4096);
  EXPECT_EQ(kv.pages()[0], 256);
  EXPECT_EQ(kv.pages()[1], (64 + 512 + 16) / 16);
  const auto tables = kv.page_tables();
  EXPECT_EQ(tables[0][255], 255);
  // The oldest page that a step's first row sees and the page its last row writes are never the same.
  const int64_t ring = kv.pages()[1];
  for (int64_t first = 64; first + 512 <= 4096; first += 7) {
    const int64_t oldest = (first - 64 + 1) / 16;
    const int64_t newest = (first + 511) / 16;
    EXPECT_LT(newest - oldest, ring);
  }
}

TEST(SequenceKv, KeepsTheCommonPrefixWithinTheLimit) {
  SequenceKv kv(two_groups(64), 4096);
  kv.append(counting(100));
  std::vector<int32_t> prompt = counting(120);
  prompt[60] = 7777;
  EXPECT_EQ(kv.keep_prefix(prompt, 119), 60);
  EXPECT_EQ(kv.tokens().size(), 60u);
  kv.append(counting(10, 60));
  EXPECT_EQ(kv.keep_prefix(counting(70), 69), 69);
}

TEST(SequenceKv, ForgetsAPrefixWhoseWindowWasOverwritten) {
  SequenceKv kv(two_groups(64), 4096);
  kv.append(counting(2000));
  EXPECT_EQ(kv.keep_prefix(counting(100), 99), 0);  // the ring now holds tokens 1400 and later
  EXPECT_TRUE(kv.tokens().empty());
  SequenceKv close(two_groups(64), 4096);
  close.append(counting(2000));
  EXPECT_EQ(close.keep_prefix(counting(1990), 1989), 1989);
  // Rolled back once, the ring still holds the later tokens: going back further must count from them.
  EXPECT_EQ(close.keep_prefix(counting(1400), 1399), 0);
}

}  // namespace
}  // namespace quire
