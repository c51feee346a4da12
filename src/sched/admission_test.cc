#include "sched/admission.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

TEST(LengthHistory, ExpectsTheQuantileOfWhatIsLonger) {
  LengthHistory history;
  EXPECT_EQ(history.expect(0, 10'000), 256) << "nothing seen yet";
  EXPECT_EQ(history.expect(0, 40), 40);
  EXPECT_EQ(history.expect(1000, 10'000), 1000) << "it may double";
  for (int64_t length = 1; length <= 100; ++length) history.add(length);
  EXPECT_EQ(history.expect(0, 10'000), 90);
  EXPECT_EQ(history.expect(60, 10'000), 36) << "of those longer than 60, nine tenths end by 96";
  EXPECT_EQ(history.expect(60, 20), 20);
  for (int i = 0; i < 512; ++i) history.add(7);
  EXPECT_EQ(history.expect(0, 10'000), 7) << "old lengths are forgotten";
  EXPECT_EQ(history.expect(0, 0), 0);
}

class PeakProjectionTest : public ::testing::Test {
 protected:
  static KvCache make(std::vector<KvGroupConfig> groups) {
    KvCacheConfig config;
    config.groups = std::move(groups);
    config.max_sequence_tokens = 640;
    return std::move(*KvCache::create(std::move(config)));
  }

  // A sequence with `size` tokens, all but the last computed.
  static Sequence running(KvCache& cache, int64_t size) {
    Sequence sequence = fresh(cache, size);
    EXPECT_TRUE(cache.admit(sequence.pages, {}, size - 1));
    sequence.computed = size - 1;
    cache.commit(sequence.pages, sequence.tokens, 0, size - 1);
    return sequence;
  }

  static Sequence fresh(KvCache& cache, int64_t size) {
    static int32_t next = 1;
    Sequence sequence;
    for (int64_t i = 0; i < size; ++i) sequence.tokens.push_back(next++);
    sequence.pages = cache.new_sequence("");
    return sequence;
  }
};

TEST_F(PeakProjectionTest, ShortOnesGiveTheirPagesToLongOnes) {
  // Three pages each now. The short one ends after 10 more tokens; the long one then has its pages to grow into.
  const auto fits = [](int64_t pages, int64_t short_output) {
    KvCache cache = make({{pages, 0}});
    const Sequence first = running(cache, 48);
    const Sequence second = fresh(cache, 48);
    PeakProjection projection(cache);
    projection.add(first, short_output);
    return projection.fits(second, {}, 48);
  };
  EXPECT_TRUE(fits(40, 48));
  EXPECT_FALSE(fits(11, 48)) << "both grow to six pages";
  EXPECT_TRUE(fits(12, 48));
  EXPECT_TRUE(fits(8, 10)) << "four and four, then six";
  EXPECT_FALSE(fits(7, 10));
}

TEST_F(PeakProjectionTest, SharedPagesAreNeitherCountedTwiceNorGivenBack) {
  KvCache cache = make({{10, 0}});
  Sequence first = running(cache, 65);
  Sequence second;
  second.tokens = first.tokens;
  second.tokens.push_back(7);
  second.pages = cache.new_sequence("");
  const PrefixMatch match = cache.match(second.pages, second.tokens, second.size() - 1);
  ASSERT_EQ(match.pages, 4);
  PeakProjection projection(cache);
  projection.add(first, 1);
  EXPECT_TRUE(projection.fits(second, match, 70)) << "4 shared, 1 of the first, 5 of the second";
  EXPECT_FALSE(projection.fits(second, match, 96)) << "11 pages alone: the shared ones do not come back";
}

TEST_F(PeakProjectionTest, EveryGroupMustLast) {
  KvCache cache = make({{100, 0}, {7, 32}});
  const Sequence first = running(cache, 100);
  PeakProjection projection(cache);
  projection.add(first, 50);
  EXPECT_TRUE(projection.fits(fresh(cache, 200), {}, 50)) << "a window of 32 needs 3 pages each";
  projection.add(first, 50);
  EXPECT_FALSE(projection.fits(fresh(cache, 200), {}, 50));
  EXPECT_FALSE(projection.fits(fresh(cache, 20), {}, 10)) << "two pages are still more than none";
}

}  // namespace
}  // namespace quire
