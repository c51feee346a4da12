#include "cache/kv_cache.h"

#include <gtest/gtest.h>

#include <numeric>

namespace quire {
namespace {

using Tokens = std::vector<int32_t>;

Tokens counting(int64_t count, int32_t first = 1) {
  Tokens tokens(static_cast<size_t>(count));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

KvCacheConfig config_of(std::vector<KvGroupConfig> groups) {
  KvCacheConfig config;
  config.groups = std::move(groups);
  config.max_sequence_tokens = 256;
  config.hash_key = {11, 12};
  config.fingerprint = "model";
  return config;
}

// Computes all of `tokens` in one step and keeps the sequence.
SequencePages computed(KvCache& cache, const Tokens& tokens, const std::string& salt = "") {
  SequencePages pages = cache.new_sequence(salt);
  const int64_t size = static_cast<int64_t>(tokens.size());
  const PrefixMatch match = cache.match(pages, tokens, size - 1);
  EXPECT_TRUE(cache.admit(pages, match, size));
  cache.commit(pages, tokens, match.tokens, size);
  return pages;
}

int64_t found(KvCache& cache, const Tokens& tokens, const std::string& salt = "") {
  SequencePages pages = cache.new_sequence(salt);
  return cache.match(pages, tokens, static_cast<int64_t>(tokens.size()) - 1).tokens;
}

MatchExplanation explained(KvCache& cache, const Tokens& tokens, const std::string& salt = "") {
  SequencePages pages = cache.new_sequence(salt);
  const PrefixMatch match = cache.match(pages, tokens, static_cast<int64_t>(tokens.size()) - 1);
  return cache.explain(pages, tokens, match);
}

TEST(KvCache, FindsFullPagesButNeverTheLastToken) {
  KvCache cache = std::move(*KvCache::create(config_of({{32, 0}})));
  computed(cache, counting(48));
  EXPECT_EQ(found(cache, counting(16)), 0) << "a prompt that is one page must still compute a row";
  EXPECT_EQ(found(cache, counting(17)), 16);
  EXPECT_EQ(found(cache, counting(48)), 32);
  EXPECT_EQ(found(cache, counting(200)), 48);
}

TEST(KvCache, SharesWithAPromptThatIsStillBeingComputed) {
  KvCache cache = std::move(*KvCache::create(config_of({{32, 0}})));
  SequencePages pages = cache.new_sequence("");
  ASSERT_TRUE(cache.admit(pages, {}, 40));
  EXPECT_EQ(found(cache, counting(100)), 0) << "nothing is published before it is computed";
  cache.commit(pages, counting(100), 0, 40);
  EXPECT_EQ(found(cache, counting(100)), 32);
}

TEST(KvCache, TheSamePageAfterAnotherPrefixIsAnotherPage) {
  KvCache cache = std::move(*KvCache::create(config_of({{32, 0}})));
  Tokens first = counting(16);
  Tokens second = counting(16, 100);
  for (const int32_t token : counting(17, 50)) {
    first.push_back(token);
    second.push_back(token);
  }
  computed(cache, first);
  EXPECT_EQ(found(cache, first), 32);
  EXPECT_EQ(found(cache, second), 0);
}

TEST(KvCache, RootsDifferBySaltAndFingerprint) {
  KvCacheConfig config = config_of({{4, 0}});
  const KvCache cache = std::move(*KvCache::create(config));
  const Hash128 root = cache.new_sequence("").root;
  EXPECT_EQ(root, cache.new_sequence("").root);
  EXPECT_NE(root, cache.new_sequence("salt").root);
  KvCache renamed = std::move(*KvCache::create(config));
  renamed.set_fingerprint("other model");
  EXPECT_NE(root, renamed.new_sequence("").root);
  config.fingerprint = "modelsalt";
  EXPECT_NE(KvCache::create(config)->new_sequence("").root, cache.new_sequence("salt").root) << "sizes are hashed too";
  config.fingerprint = "model";
  config.hash_key.k1 = 13;
  EXPECT_NE(root, KvCache::create(config)->new_sequence("").root);
}

TEST(KvCache, ExplainsWhyAMatchEnded) {
  KvCache cache = std::move(*KvCache::create(config_of({{5, 0}})));
  EXPECT_EQ(explained(cache, counting(40)).end, MatchEnd::kUnknown);
  SequencePages pages = computed(cache, counting(70));
  EXPECT_EQ(explained(cache, counting(16)).end, MatchEnd::kTooShort);
  EXPECT_EQ(explained(cache, counting(65)).end, MatchEnd::kNone);
  EXPECT_EQ(explained(cache, counting(65), "tenant").end, MatchEnd::kSalt);
  EXPECT_EQ(explained(cache, counting(90)).end, MatchEnd::kUnknown) << "nothing was computed after token 64";
  Tokens changed = counting(65);
  changed[37] = 0;
  const MatchExplanation different = explained(cache, changed);
  EXPECT_EQ(different.end, MatchEnd::kDifferent);
  EXPECT_EQ(different.differs_at, 37);
  cache.release(pages);
  SequencePages others = computed(cache, counting(33, 1000));
  EXPECT_EQ(found(cache, counting(65)), 32) << "tails are evicted before heads";
  EXPECT_EQ(explained(cache, counting(65)).end, MatchEnd::kEvicted);
}

TEST(KvCache, HitsOnTheFreeListCountAgainstWhatIsFree) {
  KvCache cache = std::move(*KvCache::create(config_of({{4, 0}})));
  SequencePages first = computed(cache, counting(48));
  cache.release(first);
  SequencePages second = cache.new_sequence("");
  const Tokens tokens = counting(100);
  const PrefixMatch match = cache.match(second, tokens, 99);
  ASSERT_EQ(match.pages, 3);
  EXPECT_EQ(cache.matched_pages(second, match, 0, 0), 3);
  EXPECT_FALSE(cache.admit(second, match, 65)) << "four pages are free, but three of them are the match";
  EXPECT_TRUE(cache.admit(second, match, 64));
}

TEST(KvCache, AWindowGroupFreesWhatFellOut) {
  KvCache cache = std::move(*KvCache::create(config_of({{16, 0}, {16, 20}})));
  SequencePages pages = computed(cache, counting(100));
  // Row 100 sees tokens 81 to 100: pages 0 to 4 of the window group are gone.
  EXPECT_EQ(pages.groups[1].first_live, 5);
  EXPECT_EQ(pages.groups[1].table[4], kNoPage);
  EXPECT_NE(pages.groups[1].table[5], kNoPage);
  EXPECT_EQ(cache.pool(1).used_pages(), 2);
  EXPECT_EQ(cache.pool(0).used_pages(), 7);
  EXPECT_EQ(found(cache, counting(100)), 96);
}

TEST(KvCache, APrefixHoldsOnlyWhereEveryGroupStillHasIt) {
  KvCache cache = std::move(*KvCache::create(config_of({{16, 0}, {7, 20}})));
  SequencePages pages = computed(cache, counting(100));
  ASSERT_EQ(found(cache, counting(97)), 96);
  // Another sequence writes over the oldest free pages of the window group: those before the window.
  SequencePages other = computed(cache, counting(49, 1000));
  EXPECT_EQ(found(cache, counting(97)), 96) << "pages 4 and 5 of the window group are all that row 96 needs";
  EXPECT_EQ(found(cache, counting(60)), 0) << "row 48 needs pages 1 and 2, which are gone";
  EXPECT_EQ(explained(cache, counting(60)).end, MatchEnd::kEvicted);
  cache.release(pages);
  cache.release(other);
}

TEST(KvCache, ForkedSequencesCopyOnlyThePartialPage) {
  KvCache cache = std::move(*KvCache::create(config_of({{16, 0}})));
  SequencePages parent = computed(cache, counting(40));
  SequencePages child = cache.fork(parent, 40);
  EXPECT_EQ(cache.pool(0).used_pages(), 3);
  std::vector<PageMove> copies;
  ASSERT_TRUE(cache.reserve(child, 40, 41, copies));
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(copies[0].from, parent.groups[0].table[2]);
  EXPECT_EQ(copies[0].to, child.groups[0].table[2]);
  EXPECT_EQ(copies[0].slots, 8);
  ASSERT_TRUE(cache.reserve(parent, 40, 41, copies));
  EXPECT_EQ(copies.size(), 1u) << "the last holder writes in place";
  EXPECT_EQ(child.groups[0].table[1], parent.groups[0].table[1]);
}

TEST(KvCache, RejectedDraftsGiveTheirPagesBack) {
  KvCache cache = std::move(*KvCache::create(config_of({{16, 0}, {16, 16}})));
  SequencePages pages = computed(cache, counting(31));
  std::vector<PageMove> copies;
  ASSERT_TRUE(cache.reserve(pages, 31, 50, copies));
  EXPECT_EQ(pages.groups[0].table.size(), 4u);
  cache.commit(pages, counting(32), 31, 32);
  EXPECT_EQ(pages.groups[0].table.size(), 2u);
  EXPECT_EQ(pages.groups[1].first_live, 1);
  EXPECT_EQ(cache.usage(0).live_slots, 32);
}

TEST(KvCache, ContiguousReservesTheLongestSequenceUpFront) {
  KvCacheConfig config = config_of({{33, 0}});
  config.layout = KvLayout::kContiguous;
  EXPECT_FALSE(KvCache::create(config).ok()) << "prefixes cannot be shared";
  config.prefix_caching = false;
  KvCache cache = std::move(*KvCache::create(config));
  SequencePages first = computed(cache, counting(10));
  SequencePages second = computed(cache, counting(10));
  EXPECT_EQ(second.groups[0].table.front(), 16);
  EXPECT_EQ(second.groups[0].table.back(), 31);
  EXPECT_EQ(cache.usage(0).used_slots, 2 * 256);
  EXPECT_EQ(cache.usage(0).live_slots, 20);
  SequencePages third = cache.new_sequence("");
  EXPECT_FALSE(cache.admit(third, {}, 10));
  cache.release(first);
  EXPECT_TRUE(cache.admit(third, {}, 10));
}

TEST(KvCache, RefusesPoolsThatHoldNothing) {
  EXPECT_EQ(KvCache::create(config_of({{0, 0}})).status().code(), StatusCode::kResourceExhausted);
  const Status window = KvCache::create(config_of({{16, 0}, {3, 50}})).status();
  EXPECT_NE(window.message().find("KV group 1 (window 50) has 3 pages of 16 tokens, but needs at least 5"),
            std::string::npos)
      << window.message();
  EXPECT_TRUE(KvCache::create(config_of({{16, 0}, {5, 50}})).ok());
  EXPECT_EQ(KvCache::create(config_of({{4, 0}}))->most_tokens(), 64);
  EXPECT_EQ(KvCache::create(config_of({{400, 0}, {8, 50}}))->most_tokens(), 256)
      << "the context, whatever a window holds";
}

}  // namespace
}  // namespace quire
