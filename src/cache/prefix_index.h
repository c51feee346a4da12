// From the hash of a prefix to the page that holds its last tokens, for one KV group.
//
// A page's hash chains over all tokens before it: H(hash of the previous page, tokens of this page). Token ids are kept
// and compared on a hit, so even a collision cannot hand out a foreign page. Each hash leads to at most one page and
// each page has at most one hash; which pages are free is the pool's business.
//
// To explain misses the index also remembers which pages follow a prefix, and most of the hashes it evicted last.
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cache/hash_table.h"
#include "cache/page_pool.h"
#include "cache/siphash.h"

namespace quire {

class PrefixIndex {
 public:
  PrefixIndex(int64_t pages, int64_t page_tokens);

  // The page that holds `tokens` (page_tokens of them) after the prefix that `hash` stands for; kNoPage if none.
  PageId find(const Hash128& hash, std::span<const int32_t> tokens) const;
  // The same for a hash whose tokens find() has just compared.
  PageId find_compared(const Hash128& hash) const;

  // Makes a full page of committed tokens findable. False, and nothing changes, when the hash already leads to a page
  // or the page already has a hash.
  bool publish(PageId page, const Hash128& parent, const Hash128& hash, std::span<const int32_t> tokens);

  // The page is about to be written again.
  void evict(PageId page);

  bool published(PageId page) const { return entry(page).published; }
  const Hash128& hash(PageId page) const { return entry(page).hash; }
  int64_t size() const { return pages_.size(); }
  int64_t evictions() const { return evictions_; }

  // Whether the hash is among the last evictions, about as many as there are pages.
  bool evicted_lately(const Hash128& hash) const { return evicted_[evicted_slot(hash)] == hash; }

  // How many of `tokens` agree with the closest page that follows `parent`; nullopt when no page follows it.
  std::optional<int64_t> longest_agreement(const Hash128& parent, std::span<const int32_t> tokens) const;

  // Fails with the first broken invariant between map, pages and siblings.
  Status check() const;

 private:
  struct Entry {
    Hash128 hash;
    Hash128 parent;
    PageId previous_sibling = kNoPage;
    PageId next_sibling = kNoPage;
    bool published = false;
  };
  Entry& entry(PageId page) { return entries_[static_cast<size_t>(page)]; }
  const Entry& entry(PageId page) const { return entries_[static_cast<size_t>(page)]; }
  std::span<const int32_t> tokens(PageId page) const;
  size_t evicted_slot(const Hash128& hash) const { return static_cast<size_t>(hash.low) % evicted_.size(); }

  int64_t page_tokens_;
  std::vector<Entry> entries_;
  std::vector<int32_t> tokens_;  // [pages][page_tokens]
  HashTable pages_;
  HashTable first_child_;         // from a parent's hash to the newest page after it
  std::vector<Hash128> evicted_;  // each where its hash says, over what was there
  int64_t evictions_ = 0;
};

}  // namespace quire
