// The page pool and the prefix index against a naive model: lists and maps that are searched, whole prefixes as keys.
// After every random command all of the cache's rules are checked and both must agree on every page.
// Rapidcheck prints the seed of a failure; RC_PARAMS="seed=N" runs it again.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/state.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "cache/kv_cache.h"

namespace quire {
namespace {

using Tokens = std::vector<int32_t>;
constexpr int kSlots = 5;

struct NaiveSequence {
  std::string salt;
  Tokens tokens;
  int64_t computed = 0;
  int64_t published = 0;
  std::vector<std::vector<PageId>> tables;
};

// What the cache should be, told in the simplest way.
struct NaiveCache {
  KvCacheConfig config;
  std::vector<std::vector<PageId>> free;                // taken from the front
  std::vector<std::map<std::string, PageId>> findable;  // by salt and all tokens up to the page's end
  std::map<int, NaiveSequence> living;

  explicit NaiveCache(const KvCacheConfig& of) : config(of), free(of.groups.size()), findable(of.groups.size()) {
    for (size_t g = 0; g < free.size(); ++g) {
      for (PageId page = 0; page < config.groups[g].pages; ++page) free[g].push_back(page);
    }
  }

  static std::string key(const NaiveSequence& sequence, int64_t tokens) {
    std::string text = sequence.salt + ":";
    for (int64_t i = 0; i < tokens; ++i) text += std::to_string(sequence.tokens[static_cast<size_t>(i)]) + ",";
    return text;
  }

  int64_t references(size_t g, PageId page) const {
    int64_t count = 0;
    for (const auto& [slot, sequence] : living) count += std::ranges::count(sequence.tables[g], page);
    return count;
  }

  bool is_findable(size_t g, PageId page) const {
    return std::ranges::any_of(findable[g], [&](const auto& entry) { return entry.second == page; });
  }

  // A row at `position` sees no token of this page any more.
  bool out_of_window(size_t g, int64_t page, int64_t position) const {
    const int64_t window = config.groups[g].window;
    return window > 0 && (page + 1) * config.page_tokens - 1 < position - window + 1;
  }

  int64_t match(const NaiveSequence& sequence, int64_t limit) const {
    for (int64_t pages = limit / config.page_tokens; pages > 0; --pages) {
      bool complete = true;
      for (size_t g = 0; g < free.size(); ++g) {
        for (int64_t page = 0; page < pages; ++page) {
          if (out_of_window(g, page, pages * config.page_tokens)) continue;
          complete &= findable[g].contains(key(sequence, (page + 1) * config.page_tokens));
        }
      }
      if (complete) return pages;
    }
    return 0;
  }

  PageId take(size_t g) {
    const PageId page = free[g].front();
    free[g].erase(free[g].begin());
    std::erase_if(findable[g], [&](const auto& entry) { return entry.second == page; });
    return page;
  }

  void drop(size_t g, PageId& held) {
    const PageId page = held;
    held = kNoPage;
    if (references(g, page) > 0) return;
    free[g].insert(is_findable(g, page) ? free[g].end() : free[g].begin(), page);
  }

  bool admit(int slot, NaiveSequence sequence, int64_t rows) {
    const int64_t pages = match(sequence, static_cast<int64_t>(sequence.tokens.size()) - 1);
    sequence.computed = pages * config.page_tokens;
    sequence.published = pages;
    sequence.tables.assign(free.size(), {});
    rows = std::min(rows, static_cast<int64_t>(sequence.tokens.size()) - sequence.computed);
    auto free_after = free;
    for (size_t g = 0; g < free.size(); ++g) {
      for (int64_t page = 0; page < pages; ++page) {
        const bool gone = out_of_window(g, page, sequence.computed);
        sequence.tables[g].push_back(gone ? kNoPage : findable[g].at(key(sequence, (page + 1) * config.page_tokens)));
        std::erase(free_after[g], sequence.tables[g].back());
      }
      if (pages_for(sequence.computed + rows) - pages > static_cast<int64_t>(free_after[g].size())) return false;
    }
    free = free_after;
    living[slot] = std::move(sequence);
    reserve(slot, rows);
    commit(slot, rows);
    return true;
  }

  int64_t pages_for(int64_t tokens) const { return (tokens + config.page_tokens - 1) / config.page_tokens; }

  bool reserve(int slot, int64_t rows) {
    NaiveSequence& sequence = living.at(slot);
    const size_t partial = static_cast<size_t>(sequence.computed / config.page_tokens);
    const auto shared = [&](size_t g) {
      return sequence.computed % config.page_tokens != 0 && references(g, sequence.tables[g][partial]) > 1;
    };
    for (size_t g = 0; g < free.size(); ++g) {
      const int64_t fresh = pages_for(sequence.computed + rows) - static_cast<int64_t>(sequence.tables[g].size());
      if (std::max<int64_t>(fresh, 0) + shared(g) > static_cast<int64_t>(free[g].size())) return false;
    }
    for (size_t g = 0; g < free.size(); ++g) {
      if (shared(g)) sequence.tables[g][partial] = take(g);
      while (static_cast<int64_t>(sequence.tables[g].size()) < pages_for(sequence.computed + rows)) {
        sequence.tables[g].push_back(take(g));
      }
    }
    return true;
  }

  void commit(int slot, int64_t rows) {
    NaiveSequence& sequence = living.at(slot);
    sequence.computed += rows;
    for (; (sequence.published + 1) * config.page_tokens <= sequence.computed; ++sequence.published) {
      for (size_t g = 0; g < free.size(); ++g) {
        const PageId page = sequence.tables[g][static_cast<size_t>(sequence.published)];
        if (!is_findable(g, page))
          findable[g].emplace(key(sequence, (sequence.published + 1) * config.page_tokens), page);
      }
    }
    for (size_t g = 0; g < free.size(); ++g) {
      std::vector<PageId>& table = sequence.tables[g];
      while (static_cast<int64_t>(table.size()) > pages_for(sequence.computed)) {
        drop(g, table.back());
        table.pop_back();
      }
      for (size_t page = 0; page < table.size(); ++page) {
        if (table[page] != kNoPage && out_of_window(g, static_cast<int64_t>(page), sequence.computed))
          drop(g, table[page]);
      }
    }
  }

  void release(int slot) {
    for (size_t g = 0; g < free.size(); ++g) {
      std::vector<PageId>& table = living.at(slot).tables[g];
      for (auto page = table.rbegin(); page != table.rend(); ++page) {
        if (*page != kNoPage) drop(g, *page);
      }
    }
    living.erase(slot);
  }

  int64_t live_slots(size_t g) const {
    std::map<PageId, int64_t> filled;
    for (const auto& [slot, sequence] : living) {
      for (size_t page = 0; page < sequence.tables[g].size(); ++page) {
        const int64_t before = static_cast<int64_t>(page) * config.page_tokens;
        int64_t& most = filled[sequence.tables[g][page]];
        most = std::max(most, std::clamp<int64_t>(sequence.computed - before, 0, config.page_tokens));
      }
    }
    filled.erase(kNoPage);
    int64_t sum = 0;
    for (const auto& [page, slots] : filled) sum += slots;
    return sum;
  }
};

struct RealCache {
  explicit RealCache(const KvCacheConfig& config) : cache(std::move(*KvCache::create(config))) {}

  KvCache cache;
  std::map<int, SequencePages> living;
  std::map<int, Tokens> tokens;
  std::map<int, int64_t> computed;
};

void compare(const NaiveCache& naive, const RealCache& real) {
  std::vector<const SequencePages*> living;
  for (const auto& [slot, pages] : real.living) living.push_back(&pages);
  const Status status = real.cache.check(living);
  if (!status.ok()) RC_FAIL(status.message());
  RC_ASSERT(real.living.size() == naive.living.size());
  for (const auto& [slot, sequence] : naive.living) {
    RC_ASSERT(real.computed.at(slot) == sequence.computed);
    for (size_t g = 0; g < naive.free.size(); ++g) {
      RC_ASSERT(real.living.at(slot).groups[g].table == sequence.tables[g]);
    }
  }
  for (size_t g = 0; g < naive.free.size(); ++g) {
    const int64_t group = static_cast<int64_t>(g);
    RC_ASSERT(real.cache.usage(group).live_slots == naive.live_slots(g));
    RC_ASSERT(real.cache.index(group).size() == static_cast<int64_t>(naive.findable[g].size()));
    for (PageId page = 0; page < naive.config.groups[g].pages; ++page) {
      RC_ASSERT(real.cache.pool(group).references(page) == naive.references(g, page));
      RC_ASSERT(real.cache.index(group).published(page) == naive.is_findable(g, page));
    }
  }
}

using Command = rc::state::Command<NaiveCache, RealCache>;

// Tokens come from few kinds, so that prefixes are often shared.
rc::Gen<Tokens> any_tokens(int longest) {
  return rc::gen::mapcat(rc::gen::inRange(1, longest + 1), [](int size) {
    return rc::gen::container<Tokens>(static_cast<size_t>(size), rc::gen::weightedElement<int32_t>({{12, 1}, {1, 2}}));
  });
}

struct Admit : Command {
  int slot = *rc::gen::inRange(0, kSlots);
  std::string salt = *rc::gen::weightedElement<std::string>({{4, ""}, {1, "tenant"}});
  Tokens tokens = *any_tokens(24);
  int rows = *rc::gen::inRange(1, 25);

  void checkPreconditions(const NaiveCache& s0) const override { RC_PRE(!s0.living.contains(slot)); }
  void apply(NaiveCache& s0) const override { s0.admit(slot, {salt, tokens, 0, 0, {}}, rows); }
  void run(const NaiveCache& s0, RealCache& real) const override {
    SequencePages pages = real.cache.new_sequence(salt);
    const int64_t size = static_cast<int64_t>(tokens.size());
    const PrefixMatch match = real.cache.match(pages, tokens, size - 1);
    RC_ASSERT(match.pages == s0.match({salt, tokens, 0, 0, {}}, size - 1));
    RC_ASSERT(match.tokens < size);
    const int64_t upto = std::min<int64_t>(size, match.tokens + rows);
    const NaiveCache after = nextState(s0);
    RC_ASSERT(real.cache.admit(pages, match, upto) == after.living.contains(slot));
    if (after.living.contains(slot)) {
      real.cache.commit(pages, tokens, match.tokens, upto);
      real.living[slot] = std::move(pages);
      real.tokens[slot] = tokens;
      real.computed[slot] = upto;
    }
    compare(after, real);
  }
  void show(std::ostream& os) const override {
    os << "Admit(" << slot << ", \"" << salt << "\", " << rc::toString(tokens) << ", " << rows << ")";
  }
};

// Reserves `rows`, of which `kept` are committed: the rest were drafts.
struct Grow : Command {
  int slot = *rc::gen::inRange(0, kSlots);
  int rows = *rc::gen::inRange(1, 9);
  int rejected = *rc::gen::weightedOneOf<int>({{2, rc::gen::just(0)}, {1, rc::gen::inRange(0, rows)}});
  int32_t token = *rc::gen::inRange(1, 3);

  int64_t kept() const { return rows - rejected; }
  Tokens extended(const NaiveSequence& sequence) const {
    Tokens tokens = sequence.tokens;
    while (static_cast<int64_t>(tokens.size()) < sequence.computed + rows) tokens.push_back(token);
    return tokens;
  }

  void checkPreconditions(const NaiveCache& s0) const override {
    RC_PRE(s0.living.contains(slot));
    RC_PRE(s0.living.at(slot).computed + rows <= s0.config.max_sequence_tokens);
  }
  void apply(NaiveCache& s0) const override {
    if (!s0.reserve(slot, rows)) return;
    NaiveSequence& sequence = s0.living.at(slot);
    const size_t size = sequence.tokens.size();
    sequence.tokens = extended(sequence);
    s0.commit(slot, kept());
    sequence.tokens.resize(std::max(size, static_cast<size_t>(sequence.computed)));  // rejected drafts are gone
  }
  void run(const NaiveCache& s0, RealCache& real) const override {
    const NaiveSequence& before = s0.living.at(slot);
    NaiveCache reserved = s0;
    const bool fits = reserved.reserve(slot, rows);
    SequencePages& pages = real.living.at(slot);
    const SequencePages old = pages;
    std::vector<PageMove> copies;
    RC_ASSERT((real.cache.reservable_rows(pages, before.computed) >= rows) == fits);
    RC_ASSERT(real.cache.reserve(pages, before.computed, before.computed + rows, copies) == fits);
    if (fits) {
      check_writable(before.computed, old, pages, copies, real.cache);
      const Tokens tokens = extended(before);
      real.cache.commit(pages, tokens, before.computed, before.computed + kept());
      real.computed[slot] = before.computed + kept();
    } else {
      RC_ASSERT(copies.empty());
    }
    compare(nextState(s0), real);
  }
  void check_writable(int64_t computed, const SequencePages& old, const SequencePages& pages,
                      const std::vector<PageMove>& copies, const KvCache& cache) const {
    size_t swapped = 0;
    for (size_t g = 0; g < pages.groups.size(); ++g) {
      const int64_t group = static_cast<int64_t>(g);
      for (int64_t position = computed; position < computed + rows; ++position) {
        const PageId page = pages.groups[g].table[static_cast<size_t>(position / cache.config().page_tokens)];
        RC_ASSERT(cache.pool(group).references(page) == 1);
        RC_ASSERT(!cache.index(group).published(page));
      }
      for (size_t i = 0; i < old.groups[g].table.size(); ++i) {
        if (old.groups[g].table[i] == pages.groups[g].table[i]) continue;
        RC_ASSERT(swapped < copies.size());
        const PageMove& copy = copies[swapped++];
        RC_ASSERT(copy.from == old.groups[g].table[i] && copy.to == pages.groups[g].table[i]);
        RC_ASSERT(copy.slots == computed % cache.config().page_tokens && copy.group == static_cast<int32_t>(g));
      }
    }
    RC_ASSERT(swapped == copies.size());
  }
  void show(std::ostream& os) const override { os << "Grow(" << slot << ", " << rows << " - " << rejected << ")"; }
};

struct Fork : Command {
  int slot = *rc::gen::inRange(0, kSlots);
  int child = *rc::gen::inRange(0, kSlots);

  void checkPreconditions(const NaiveCache& s0) const override {
    RC_PRE(s0.living.contains(slot) && !s0.living.contains(child));
  }
  void apply(NaiveCache& s0) const override { s0.living[child] = s0.living.at(slot); }
  void run(const NaiveCache& s0, RealCache& real) const override {
    real.living[child] = real.cache.fork(real.living.at(slot), real.computed.at(slot));
    real.computed[child] = real.computed.at(slot);
    compare(nextState(s0), real);
  }
  void show(std::ostream& os) const override { os << "Fork(" << slot << " -> " << child << ")"; }
};

struct Release : Command {
  int slot = *rc::gen::inRange(0, kSlots);

  void checkPreconditions(const NaiveCache& s0) const override { RC_PRE(s0.living.contains(slot)); }
  void apply(NaiveCache& s0) const override { s0.release(slot); }
  void run(const NaiveCache& s0, RealCache& real) const override {
    real.cache.release(real.living.at(slot));
    real.living.erase(slot);
    compare(nextState(s0), real);
  }
  void show(std::ostream& os) const override { os << "Release(" << slot << ")"; }
};

void agree_with_naive(std::vector<KvGroupConfig> groups) {
  EXPECT_TRUE(rc::check([groups] {
    KvCacheConfig config;
    config.groups = groups;
    config.page_tokens = *rc::gen::element<int64_t>(1, 2, 4);
    config.max_sequence_tokens = 40;
    for (KvGroupConfig& group : config.groups) group.pages = *rc::gen::inRange<int64_t>(12, 40);
    config.hash_key = {*rc::gen::arbitrary<uint64_t>(), 5};
    const NaiveCache naive(config);
    RealCache real(config);
    rc::state::check(naive, real, rc::state::gen::execOneOfWithArgs<Admit, Grow, Grow, Fork, Release>());
  }));
}

TEST(KvCacheModel, GlobalLayers) { agree_with_naive({{0, 0, 1}}); }
TEST(KvCacheModel, GlobalAndWindowLayers) { agree_with_naive({{0, 0, 1}, {0, 7, 1}}); }
TEST(KvCacheModel, WindowLayersAlone) { agree_with_naive({{0, 9, 1}, {0, 4, 1}}); }

}  // namespace
}  // namespace quire
