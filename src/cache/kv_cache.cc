#include "cache/kv_cache.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace quire {
namespace {

void append_sized(std::vector<std::byte>& bytes, std::string_view text) {
  const uint64_t size = text.size();
  const auto* size_bytes = reinterpret_cast<const std::byte*>(&size);
  bytes.insert(bytes.end(), size_bytes, size_bytes + sizeof(size));
  const auto* text_bytes = reinterpret_cast<const std::byte*>(text.data());
  bytes.insert(bytes.end(), text_bytes, text_bytes + text.size());
}

std::string group_name(const KvGroupConfig& group, size_t index) {
  return "KV group " + std::to_string(index) +
         (group.window == 0 ? " (global)" : " (window " + std::to_string(group.window) + ")");
}

}  // namespace

std::string_view match_end_name(MatchEnd end) {
  switch (end) {
    case MatchEnd::kNone:
      return "none";
    case MatchEnd::kDisabled:
      return "disabled";
    case MatchEnd::kTooShort:
      return "too_short";
    case MatchEnd::kEvicted:
      return "evicted";
    case MatchEnd::kSalt:
      return "salt";
    case MatchEnd::kDifferent:
      return "different_token";
    case MatchEnd::kUnknown:
      return "unknown_prefix";
  }
  return "unknown_prefix";
}

Result<KvCache> KvCache::create(KvCacheConfig config) {
  if (config.groups.empty() || config.page_tokens < 1 || config.max_sequence_tokens < 1) {
    return invalid_argument("a KV cache needs at least one group, page size and context above 0");
  }
  if (!std::has_single_bit(static_cast<uint64_t>(config.page_tokens))) {
    return invalid_argument("a page of " + std::to_string(config.page_tokens) + " tokens is not a power of two");
  }
  if (config.layout == KvLayout::kContiguous && config.prefix_caching) {
    return invalid_argument("contiguous KV cannot share prefixes: turn prefix caching off");
  }
  for (size_t g = 0; g < config.groups.size(); ++g) {
    const KvGroupConfig& group = config.groups[g];
    if (group.pages > INT32_MAX || group.window < 0) {
      return out_of_range(group_name(group, g) + ": " + std::to_string(group.pages) + " pages are not possible");
    }
    const int64_t whole = (config.max_sequence_tokens + config.page_tokens - 1) / config.page_tokens;
    int64_t least = config.layout == KvLayout::kContiguous ? whole : 1;
    if (config.layout == KvLayout::kPaged && group.window > 0) {
      least = std::min(whole, (group.window - 1 + config.page_tokens - 1) / config.page_tokens + 1);
    }
    if (group.pages < least) {
      return resource_exhausted(group_name(group, g) + " has " + std::to_string(group.pages) + " pages of " +
                                std::to_string(config.page_tokens) + " tokens, but needs at least " +
                                std::to_string(least) + ": give the KV cache more memory or lower the context");
    }
  }
  return KvCache(std::move(config));
}

KvCache::KvCache(KvCacheConfig config)
    : config_(std::move(config)), page_shift_(std::countr_zero(static_cast<uint64_t>(config_.page_tokens))) {
  for (const KvGroupConfig& group : config_.groups) {
    groups_.push_back({group, PagePool(group.pages, config_.page_tokens),
                       PrefixIndex(config_.prefix_caching ? group.pages : 0, config_.page_tokens)});
  }
}

int64_t KvCache::most_tokens() const {
  int64_t most = config_.max_sequence_tokens;
  for (const Group& group : groups_) {
    if (group.config.window == 0) most = std::min(most, group.config.pages * config_.page_tokens);
  }
  return most;
}

SequencePages KvCache::new_sequence(std::string_view salt) const {
  std::vector<std::byte> identity;
  append_sized(identity, config_.fingerprint);
  append_sized(identity, salt);
  SequencePages pages;
  pages.groups.resize(groups_.size());
  pages.root = siphash128(config_.hash_key, identity);
  return pages;
}

int64_t KvCache::window_pages(const Group& group) const { return pages_for(group.config.window - 1); }

int64_t KvCache::first_live_page(const Group& group, int64_t computed) const {
  if (group.config.window == 0 || config_.layout == KvLayout::kContiguous) return 0;
  return page_at(std::max<int64_t>(0, computed - group.config.window + 1));
}

std::span<const int32_t> KvCache::page_of(std::span<const int32_t> tokens, int64_t page) const {
  return tokens.subspan(static_cast<size_t>(page * config_.page_tokens), static_cast<size_t>(config_.page_tokens));
}

const Hash128& KvCache::parent_hash(const SequencePages& pages, int64_t page) const {
  return page == 0 ? pages.root : pages.hashes[static_cast<size_t>(page - 1)];
}

void KvCache::extend_hashes(SequencePages& pages, std::span<const int32_t> tokens, int64_t count) const {
  std::vector<std::byte> message(sizeof(Hash128) + static_cast<size_t>(config_.page_tokens) * sizeof(int32_t));
  for (int64_t page = static_cast<int64_t>(pages.hashes.size()); page < count; ++page) {
    const std::span<const int32_t> content = page_of(tokens, page);
    std::memcpy(message.data(), &parent_hash(pages, page), sizeof(Hash128));
    std::memcpy(message.data() + sizeof(Hash128), content.data(), content.size_bytes());
    pages.hashes.push_back(siphash128(config_.hash_key, message));
  }
}

PageId KvCache::find(const Group& group, const SequencePages& pages, std::span<const int32_t> tokens,
                     int64_t page) const {
  return group.index.find(pages.hashes[static_cast<size_t>(page)], page_of(tokens, page));
}

PrefixMatch KvCache::match(SequencePages& pages, std::span<const int32_t> tokens, int64_t limit) const {
  PrefixMatch match;
  if (!config_.prefix_caching) return match;
  match.limit = page_at(limit);
  extend_hashes(pages, tokens, match.limit);
  int64_t found = match.limit;
  for (const Group& group : groups_) {
    if (group.config.window > 0) continue;
    int64_t length = 0;
    while (length < found && find(group, pages, tokens, length) != kNoPage) ++length;
    found = length;
  }
  // A window group needs the pages just before the hit point. One that is missing rules out all hit points that need it.
  for (bool shortened = true; shortened;) {
    shortened = false;
    for (const Group& group : groups_) {
      if (group.config.window == 0) continue;
      int64_t page = found - 1;
      while (page >= 0 && page >= found - window_pages(group)) {
        if (find(group, pages, tokens, page) == kNoPage) {
          found = page;
          shortened = true;
        }
        --page;
      }
    }
  }
  match.pages = found;
  match.tokens = found * config_.page_tokens;
  return match;
}

MatchExplanation KvCache::explain(const SequencePages& pages, std::span<const int32_t> tokens,
                                  const PrefixMatch& match) const {
  if (!config_.prefix_caching) return {MatchEnd::kDisabled, -1};
  if (match.limit == 0) return {MatchEnd::kTooShort, -1};
  if (match.pages == match.limit) return {MatchEnd::kNone, -1};
  bool held = false;
  for (const Group& group : groups_) {
    const Hash128& missed = pages.hashes[static_cast<size_t>(match.pages)];
    if (group.index.evicted_lately(missed)) return {MatchEnd::kEvicted, -1};
    held |= find(group, pages, tokens, match.pages) != kNoPage;
  }
  if (held) return {MatchEnd::kEvicted, -1};  // another group, or an earlier page of a window, no longer has it
  const PrefixIndex& index = groups_.front().index;
  const auto agreement = index.longest_agreement(parent_hash(pages, match.pages), page_of(tokens, match.pages));
  if (agreement) return {MatchEnd::kDifferent, match.tokens + *agreement};
  if (match.pages == 0 && index.size() > 0) return {MatchEnd::kSalt, -1};
  return {MatchEnd::kUnknown, -1};
}

int64_t KvCache::matched_pages(const SequencePages& pages, const PrefixMatch& match, int64_t g,
                               int32_t references) const {
  const Group& group = groups_[static_cast<size_t>(g)];
  int64_t count = 0;
  for (int64_t page = first_live_page(group, match.tokens); page < match.pages; ++page) {
    const PageId found = group.index.find_compared(pages.hashes[static_cast<size_t>(page)]);
    count += group.pool.references(found) == references;
  }
  return count;
}

int64_t KvCache::shared_pages(const SequencePages& pages, int64_t g) const {
  const PagePool& pool = groups_[static_cast<size_t>(g)].pool;
  const std::vector<PageId>& table = pages.groups[static_cast<size_t>(g)].table;
  if (table.empty() || pool.references(table.front()) == 1) return 0;
  return std::ranges::partition_point(table, [&](PageId page) { return pool.references(page) > 1; }) - table.begin();
}

bool KvCache::admit(SequencePages& pages, const PrefixMatch& match, int64_t upto) {
  for (int64_t g = 0; g < groups(); ++g) {
    const int64_t wanted = pages_for(upto) - match.pages + matched_pages(pages, match, g, 0);
    if (config_.layout == KvLayout::kPaged && wanted > free_pages(g)) return false;
  }
  for (size_t g = 0; g < groups_.size(); ++g) {
    Group& group = groups_[g];
    SequencePages::Group& held = pages.groups[g];
    held.first_live = first_live_page(group, match.tokens);
    held.table.assign(static_cast<size_t>(held.first_live), kNoPage);
    for (int64_t page = held.first_live; page < match.pages; ++page) {
      held.table.push_back(group.index.find_compared(pages.hashes[static_cast<size_t>(page)]));
      group.pool.add_reference(held.table.back());
    }
  }
  pages.published = match.pages;
  std::vector<PageMove> copies;
  const bool reserved = reserve(pages, match.tokens, upto, copies);
  QUIRE_CHECK(copies.empty() && (reserved || config_.layout == KvLayout::kContiguous));
  return reserved;
}

bool KvCache::needs_copy(const Group& group, const SequencePages::Group& pages, int64_t computed) const {
  return slot_at(computed) != 0 && group.pool.references(pages.table[static_cast<size_t>(page_at(computed))]) > 1;
}

int64_t KvCache::most_rows(int64_t computed) const {
  int64_t rows = config_.max_sequence_tokens - computed;
  for (const Group& group : groups_) {
    rows = std::min(rows, (first_live_page(group, computed) + group.config.pages) * config_.page_tokens - computed);
  }
  return rows;
}

int64_t KvCache::reservable_rows(const SequencePages& pages, int64_t computed) const {
  int64_t rows = most_rows(computed);
  for (size_t g = 0; g < groups_.size(); ++g) {
    const Group& group = groups_[g];
    const SequencePages::Group& held = pages.groups[g];
    const int64_t copied = needs_copy(group, held, computed);
    if (copied > group.pool.free_pages()) return 0;
    const int64_t coverable = static_cast<int64_t>(held.table.size()) + group.pool.free_pages() - copied;
    rows = std::min(rows, coverable * config_.page_tokens - computed);
  }
  return rows;
}

bool KvCache::reserve(SequencePages& pages, int64_t computed, int64_t upto, std::vector<PageMove>& copies) {
  if (config_.layout == KvLayout::kContiguous) {
    for (size_t g = 0; g < groups_.size(); ++g) {
      std::vector<PageId>& table = pages.groups[g].table;
      if (!table.empty()) continue;
      const int64_t count = pages_for(config_.max_sequence_tokens);
      const PageId first = groups_[g].pool.take_run(count);
      if (first == kNoPage) {
        release(pages);
        return false;
      }
      for (PageId page = first; page < first + count; ++page) table.push_back(page);
    }
    return true;
  }
  const int64_t wanted = pages_for(upto);
  for (size_t g = 0; g < groups_.size(); ++g) {
    const SequencePages::Group& held = pages.groups[g];
    const int64_t fresh = std::max<int64_t>(0, wanted - static_cast<int64_t>(held.table.size()));
    if (fresh + needs_copy(groups_[g], held, computed) > groups_[g].pool.free_pages()) return false;
  }
  for (size_t g = 0; g < groups_.size(); ++g) {
    Group& group = groups_[g];
    std::vector<PageId>& table = pages.groups[g].table;
    if (needs_copy(group, pages.groups[g], computed)) {
      PageId& partial = table[static_cast<size_t>(page_at(computed))];
      const int32_t slots = static_cast<int32_t>(slot_at(computed));
      const PageId copy = take(group);
      group.pool.set_filled(copy, slots);
      copies.push_back({PageMove::Kind::kCopy, static_cast<int32_t>(g), partial, copy, slots});
      drop(group, std::exchange(partial, copy));
    }
    while (static_cast<int64_t>(table.size()) < wanted) table.push_back(take(group));
  }
  return true;
}

PageId KvCache::take(Group& group) {
  const PageId page = group.pool.take();
  if (config_.prefix_caching && group.index.published(page)) group.index.evict(page);
  return page;
}

void KvCache::drop(Group& group, PageId page) {
  group.pool.drop(page, config_.prefix_caching && group.index.published(page));
}

void KvCache::commit(SequencePages& pages, std::span<const int32_t> tokens, int64_t from, int64_t to) {
  for (size_t g = 0; g < groups_.size(); ++g) {
    SequencePages::Group& held = pages.groups[g];
    for (int64_t page = page_at(from); page * config_.page_tokens < to; ++page) {
      const int64_t slots = std::min(config_.page_tokens, to - page * config_.page_tokens);
      groups_[g].pool.set_filled(held.table[static_cast<size_t>(page)], slots);
    }
  }
  if (config_.prefix_caching) publish(pages, tokens, to);
  if (config_.layout == KvLayout::kContiguous) return;
  for (size_t g = 0; g < groups_.size(); ++g) trim(groups_[g], pages.groups[g], to);
}

// What was reserved for rejected drafts goes back, and so does what fell out of the window. Committed positions decide:
// a rejected draft moves the window back.
void KvCache::trim(Group& group, SequencePages::Group& pages, int64_t computed) {
  while (static_cast<int64_t>(pages.table.size()) > pages_for(computed)) {
    drop(group, pages.table.back());
    pages.table.pop_back();
  }
  const int64_t first_live = first_live_page(group, computed);
  for (int64_t page = pages.first_live; page < first_live; ++page) {
    drop(group, std::exchange(pages.table[static_cast<size_t>(page)], kNoPage));
  }
  pages.first_live = first_live;
}

void KvCache::publish(SequencePages& pages, std::span<const int32_t> tokens, int64_t computed) {
  const int64_t full = page_at(computed);
  if (full <= pages.published) return;
  extend_hashes(pages, tokens, full);
  for (int64_t page = pages.published; page < full; ++page) {
    for (size_t g = 0; g < groups_.size(); ++g) {
      groups_[g].index.publish(pages.groups[g].table[static_cast<size_t>(page)], parent_hash(pages, page),
                               pages.hashes[static_cast<size_t>(page)], page_of(tokens, page));
    }
  }
  pages.published = full;
}

// Tails first, so that among pages freed together the heads, which more prompts share, survive longest.
void KvCache::release(SequencePages& pages) {
  for (size_t g = 0; g < groups_.size(); ++g) {
    SequencePages::Group& held = pages.groups[g];
    for (auto page = held.table.rbegin(); page != held.table.rend(); ++page) {
      if (*page != kNoPage) drop(groups_[g], *page);
    }
    held = {};
  }
  pages.published = 0;
}

SequencePages KvCache::fork(const SequencePages& parent, int64_t computed) {
  SequencePages child = parent;
  if (config_.layout == KvLayout::kContiguous) {
    for (SequencePages::Group& held : child.groups) held = {};
    return child;
  }
  for (size_t g = 0; g < groups_.size(); ++g) {
    SequencePages::Group& held = child.groups[g];
    held.table.resize(static_cast<size_t>(pages_for(computed)));
    for (const PageId page : held.table) {
      if (page != kNoPage) groups_[g].pool.add_reference(page);
    }
  }
  return child;
}

KvUsage KvCache::usage(int64_t g) const {
  const Group& group = groups_[static_cast<size_t>(g)];
  return {group.pool.pages(), group.pool.used_pages() * config_.page_tokens, group.pool.live_slots(),
          group.index.size(), group.index.evictions()};
}

Status KvCache::check(std::span<const SequencePages* const> living) const {
  for (size_t g = 0; g < groups_.size(); ++g) {
    const Group& group = groups_[g];
    std::vector<int32_t> tables(static_cast<size_t>(group.pool.pages()));
    for (const SequencePages* pages : living) {
      const SequencePages::Group& held = pages->groups[g];
      for (size_t i = 0; i < held.table.size(); ++i) {
        const PageId page = held.table[i];
        if ((page == kNoPage) != (static_cast<int64_t>(i) < held.first_live)) {
          return corrupt("a page table has a hole where its window has not passed");
        }
        if (page == kNoPage) continue;
        ++tables[static_cast<size_t>(page)];
        if (config_.prefix_caching && group.index.published(page) &&
            (i >= pages->hashes.size() || !(group.index.hash(page) == pages->hashes[i]))) {
          return corrupt("page " + std::to_string(page) + " can be found under tokens that its table does not have");
        }
      }
    }
    QUIRE_RETURN_IF_ERROR(group.pool.check(tables));
    QUIRE_RETURN_IF_ERROR(group.index.check());
  }
  return {};
}

}  // namespace quire
